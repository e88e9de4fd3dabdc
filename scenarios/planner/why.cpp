#include "scenarios/planner/why.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <numeric>
#include <vector>

#include "core/base/bytes.h"
#include "results/format.h"
#include "results/report_data.h"
#include "scenarios/files/strategy_json.h"

namespace zl {
namespace {

// Steps that differ by less are as fast as people read them.
constexpr double kAsFast = 0.0005;
// Of the step, what is too short to tell.
constexpr double kLeastTold = 0.001;
constexpr std::size_t kFewestTold = 2;
// Of whose numbers a table has room.
constexpr std::size_t kMostStagesTold = 8;

std::string percent(double share) {
  char text[32];
  std::snprintf(text, sizeof text, "%.1f %%", 100 * share);
  return text;
}

struct SavedPart {
  const char* what;
  double seconds;  // less than 0: more is spent
};

std::vector<SavedPart> saved_parts(const RunResult& a, const RunResult& b) {
  const TimeBreakdown &mine = a.time, &theirs = b.time;
  return {{"compute", theirs.compute - mine.compute},
          {"tensor communication", theirs.exposed_tensor - mine.exposed_tensor},
          {"pipeline communication", theirs.exposed_pipeline - mine.exposed_pipeline},
          {"data communication", theirs.exposed_data() - mine.exposed_data()},
          {"bubble", theirs.bubble - mine.bubble},
          {"offload stall", theirs.offload_stall - mine.offload_stall},
          {"optimizer", theirs.optimizer - mine.optimizer},
          {"waiting for the host", host_seconds(b) - host_seconds(a)}};
}

// The largest ones until they say which of the two is faster; those that say so come first.
std::vector<SavedPart> telling_parts(const RunResult& a, const RunResult& b) {
  const double all = b.step_time.median - a.step_time.median;
  std::vector<SavedPart> parts = saved_parts(a, b);
  std::erase_if(parts, [&a](const SavedPart& part) {
    return std::abs(part.seconds) < kLeastTold * a.step_time.median;
  });
  std::ranges::stable_sort(parts, {},
                           [](const SavedPart& part) { return -std::abs(part.seconds); });
  double told = 0;
  std::size_t count = 0;
  for (; count < parts.size(); ++count) {
    if (count >= kFewestTold && told * all > 0) break;
    told += parts[count].seconds;
  }
  parts.resize(count);
  std::stable_partition(parts.begin(), parts.end(),
                        [all](const SavedPart& part) { return part.seconds * all > 0; });
  return parts;
}

}  // namespace

std::string mesh_text(const Strategy& strategy, std::int64_t ranks) {
  const std::int64_t model = strategy.tensor.ranks * strategy.pipeline.ranks;
  const std::int64_t data = ranks / model;
  std::string text;
  const auto add = [&text](const std::string& part) { text += (text.empty() ? "" : " ") + part; };
  if (strategy.tensor.ranks > 1) {
    add("tp" + std::to_string(strategy.tensor.ranks) +
        (strategy.tensor.sequence_parallel ? "+sp" : ""));
  }
  if (strategy.pipeline.ranks > 1) add("pp" + std::to_string(strategy.pipeline.ranks));
  const std::int64_t replicas = strategy.zero.replicas;
  add("dp" + std::to_string(data) +
      (replicas > 1 ? " (" + std::to_string(replicas) + " copies)" : ""));
  return text;
}

std::string schedule_text(const PipelineConfig& pipeline) {
  if (pipeline.ranks == 1) return "-";
  std::string text = name_of(pipeline.schedule);
  if (pipeline.virtual_stages > 1) text += " x" + std::to_string(pipeline.virtual_stages);
  return text;
}

std::string state_text(const Strategy& strategy) {
  std::string text = std::to_string(strategy.zero.stage);
  if (!strategy.offload.any()) return text;
  return text +
         (strategy.offload.parameters == Tier::device ? ", optimizer on host" : ", all on host");
}

std::string plan_name(const Strategy& strategy) {
  std::string name = "zero-" + std::to_string(strategy.zero.stage);
  if (strategy.offload.any()) {
    name += strategy.offload.parameters == Tier::device ? " + offload optimizer" : " + offload all";
  }
  if (strategy.recompute.mode != RecomputeMode::none) {
    const bool by_stage = !strategy.recompute.stage_blocks.empty();
    name += " + recompute " + (by_stage ? "by stage" : recompute_text(strategy.recompute));
  }
  const auto add = [&name](const char* what, std::int64_t count) {
    if (count > 1) name += " " + std::string(what) + std::to_string(count);
  };
  const bool cut = strategy.tensor.ranks * strategy.pipeline.ranks > 1;
  if (cut) name += " +";
  add("tp", strategy.tensor.ranks);
  if (strategy.tensor.sequence_parallel) name += " sp";
  add("pp", strategy.pipeline.ranks);
  if (strategy.pipeline.ranks > 1) {
    name += std::string(" ") + name_of(strategy.pipeline.schedule);
    add("x", strategy.pipeline.virtual_stages);
  }
  add("+ copies ", strategy.zero.replicas);
  add("+ micro-batch ", strategy.micro_batch);
  return name;
}

int complexity(const Strategy& strategy) {
  const PipelineConfig& pipeline = strategy.pipeline;
  int parts = strategy.zero.stage;
  parts += strategy.tensor.ranks > 1 ? 2 : 0;
  parts += strategy.tensor.sequence_parallel ? 1 : 0;
  parts += pipeline.ranks > 1 ? 3 : 0;
  parts += pipeline.virtual_stages > 1 ? 1 : 0;
  parts += pipeline.ranks > 1 && pipeline.schedule != PipelineKind::one_f_one_b ? 1 : 0;
  parts += strategy.zero.replicas > 1 ? 1 : 0;
  parts += strategy.recompute.mode != RecomputeMode::none ? 1 : 0;
  return parts + (strategy.offload.any() ? 3 : 0);
}

std::string time_beside(const Plan& plan, const Plan& other) {
  const RunResult &a = plan.result, &b = other.result;
  const double faster = b.step_time.median / a.step_time.median - 1;
  std::string text = percent(std::abs(faster)) + (faster >= 0 ? " faster" : " slower");
  if (std::abs(faster) < kAsFast) text = "as fast";
  const std::vector<SavedPart> parts = telling_parts(a, b);
  for (std::size_t i = 0; i < parts.size(); ++i) {
    text += (i == 0 ? ": " : ", ") + readable(Cell(std::abs(parts[i].seconds)), Unit::seconds) +
            (parts[i].seconds > 0 ? " less " : " more ") + parts[i].what;
  }
  return text;
}

std::string memory_beside(const Plan& plan, const Plan& other) {
  const std::int64_t less = bytes_at_peak(other.result) - bytes_at_peak(plan.result);
  if (less == 0) return "";
  return format_bytes(std::abs(less)) + (less > 0 ? " less" : " more") + " memory";
}

std::string recomputed_beside(const Plan& plan, const Plan& other) {
  const auto sum = [](const std::vector<std::int64_t>& layers) {
    return std::accumulate(layers.begin(), layers.end(), std::int64_t{0});
  };
  const std::int64_t mine = sum(recomputed_layers(plan)), theirs = sum(recomputed_layers(other));
  if (mine == theirs) return "";
  return std::to_string(mine) + " of " + std::to_string(sum(plan.layers)) +
         " layers recomputed, not " + std::to_string(theirs);
}

std::string why_better(const Plan& plan, const Plan& other) {
  const std::string memory = memory_beside(plan, other);
  const std::string recomputed = recomputed_beside(plan, other);
  return time_beside(plan, other) + (memory.empty() ? "" : "; ") + memory +
         (recomputed.empty() ? "" : "; ") + recomputed;
}

std::string recomputed_text(const Plan& plan) {
  const RecomputeConfig& recompute = plan.strategy.strategy.recompute;
  std::string text = recompute_text(recompute);
  if (recompute.stage_blocks.size() > kMostStagesTold) {
    const auto [least, largest] = std::ranges::minmax(recompute.stage_blocks);
    text = "by stage, " + std::to_string(largest) + " to " + std::to_string(least);
  }
  if (!recomputes_first_blocks(recompute.mode) || plan.layers.empty()) return text;
  const auto [fewest, most] = std::ranges::minmax(plan.layers);
  text += " of " + std::to_string(fewest);
  return fewest == most ? text : text + "-" + std::to_string(most);
}

std::vector<std::int64_t> recomputed_layers(const Plan& plan) {
  const RecomputeConfig& recompute = plan.strategy.strategy.recompute;
  std::vector<std::int64_t> layers = plan.layers;
  for (std::size_t stage = 0; stage < layers.size(); ++stage) {
    std::int64_t& each = layers[stage];
    switch (recompute.mode) {
      case RecomputeMode::none:
      case RecomputeMode::selective:
        each = 0;
        break;
      case RecomputeMode::automatic:
      case RecomputeMode::first_blocks:
        each = std::min(each, recompute.blocks_of(static_cast<int>(stage)));
        break;
      case RecomputeMode::full:
      case RecomputeMode::every_k:
        break;
    }
  }
  return layers;
}

}  // namespace zl
