#include "scenarios/planner/why.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <utility>

#include "core/base/bytes.h"
#include "results/format.h"
#include "scenarios/files/strategy_json.h"

namespace zl {
namespace {

std::string percent(double share) {
  char text[32];
  std::snprintf(text, sizeof text, "%.1f %%", 100 * share);
  return text;
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
    name += " + recompute " + recompute_text(strategy.recompute);
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

std::string why_better(const Plan& plan, const Plan& other) {
  const RunResult &a = plan.result, &b = other.result;
  const double faster = b.step_time.median / a.step_time.median - 1;
  std::string text = percent(std::abs(faster)) + (faster >= 0 ? " faster" : " slower");
  const TimeBreakdown &mine = a.time, &theirs = b.time;
  std::array<std::pair<const char*, double>, 6> parts{
      {{"compute", theirs.compute - mine.compute},
       {"tensor communication", theirs.exposed_tensor - mine.exposed_tensor},
       {"pipeline communication", theirs.exposed_pipeline - mine.exposed_pipeline},
       {"data communication", theirs.exposed_data() - mine.exposed_data()},
       {"bubble", theirs.bubble - mine.bubble},
       {"offload stall", theirs.offload_stall - mine.offload_stall}}};
  std::ranges::stable_sort(parts, {}, [](const auto& part) { return -std::abs(part.second); });
  for (std::size_t i = 0; i < 2; ++i) {
    const auto& [what, saved] = parts[i];
    if (std::abs(saved) < 1e-3 * a.step_time.median) continue;
    text += (i == 0 ? ": " : ", ") + readable(Cell(std::abs(saved)), Unit::seconds) +
            (saved > 0 ? " less " : " more ") + what;
  }
  const std::int64_t memory = b.peak_device.total() - a.peak_device.total();
  if (memory != 0) {
    text += "; " + format_bytes(std::abs(memory)) + (memory > 0 ? " less" : " more") + " memory";
  }
  return text;
}

}  // namespace zl
