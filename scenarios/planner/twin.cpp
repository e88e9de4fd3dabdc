#include "scenarios/planner/twin.h"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <tuple>

#include "core/base/error.h"
#include "scenarios/files/clusters.h"
#include "scenarios/files/load_scenario.h"
#include "scenarios/files/strategy_json.h"
#include "scenarios/run/replay.h"

namespace zl {
namespace {

constexpr std::int64_t kShort = 2, kLongPipeline = 4;  // ranks of an axis
constexpr std::int64_t kHeadSize = 32, kHeadsOfRank = 4, kVocab = 256;
constexpr const char* kUnequal = "NO";
constexpr std::int64_t kFewestTokens = 128, kMostTokens = 2048;  // of a sequence
constexpr std::int64_t kSteps = 8, kTwinMicroBatch = 2;
// Below, what a step takes beside its work decides, which is predicted badly.
constexpr double kLeastStepSeconds = 0.05;

std::int64_t shortened_axis(std::int64_t ranks) { return std::min(ranks, kShort); }

// Ranks along every axis of the twin.
struct SmallMesh {
  std::int64_t tensor = 1, pipeline = 1, shard = 1, replicas = 1;

  std::int64_t ranks() const { return tensor * pipeline * shard * replicas; }
};

SmallMesh small_mesh(const Strategy& plan, std::int64_t ranks) {
  const std::int64_t data = ranks / (plan.tensor.ranks * plan.pipeline.ranks);
  SmallMesh mesh{.tensor = shortened_axis(plan.tensor.ranks),
                 .pipeline = shortened_axis(plan.pipeline.ranks),
                 .shard = shortened_axis(data / plan.zero.replicas),
                 .replicas = shortened_axis(plan.zero.replicas)};
  if (mesh.ranks() > kTwinRanks) mesh.replicas = 1;
  if (plan.pipeline.ranks >= kLongPipeline && mesh.ranks() * kShort <= kTwinRanks) {
    mesh.pipeline = kLongPipeline;
  }
  return mesh;
}

// The same architecture: grouped queries, gates, norms, tied heads and biases stay.
ModelConfig small_model(const ModelConfig& model, const SmallMesh& mesh, std::int64_t chunks,
                        std::int64_t sequence) {
  ModelConfig small = model;
  const bool has_groups = model.kv_heads > 0 && model.kv_heads < model.heads;
  small.name = model.name + "-twin";
  small.heads = kHeadsOfRank * mesh.tensor;
  small.kv_heads = has_groups ? mesh.tensor : small.heads;
  small.head_size = kHeadSize;
  small.hidden = small.heads * kHeadSize;
  small.ffn = 2 * small.hidden;
  small.layers = mesh.pipeline * chunks;
  small.vocab = kVocab;
  small.max_sequence = sequence;
  small.sliding_window = std::min(model.sliding_window, sequence / 2);
  small.sliding_layers.clear();
  small.dropout = small.attention_dropout = 0;
  return small;
}

// A stage of a twin has one layer: it is recomputed where the plan's stage there recomputes any.
void shorten_blocks(const PipelineConfig& pipeline, RecomputeConfig& recompute) {
  const std::vector<std::int64_t> of_plan = std::move(recompute.stage_blocks);
  recompute.stage_blocks.clear();
  if (of_plan.empty()) return;
  const std::size_t stages = pipeline.ranks * pipeline.virtual_stages;
  for (std::size_t stage = 0; stage < stages; ++stage) {
    recompute.stage_blocks.push_back(of_plan[stage * of_plan.size() / stages] > 0 ? 1 : 0);
  }
  if (std::ranges::count(recompute.stage_blocks, 1) == 0) recompute = {};
}

Strategy small_strategy(const Strategy& plan, const SmallMesh& mesh) {
  Strategy small = plan;
  small.tensor.ranks = mesh.tensor;
  small.pipeline.ranks = mesh.pipeline;
  small.pipeline.layers_per_stage.clear();
  if (mesh.pipeline == 1) small.pipeline = {};
  shorten_blocks(small.pipeline, small.recompute);
  small.zero.replicas = mesh.replicas;
  small.micro_batch = std::min(plan.micro_batch, kTwinMicroBatch);
  small.gradient_accumulation = std::min(plan.gradient_accumulation, 2 * mesh.pipeline);
  return small;
}

Scenario twin_of(const Scenario& scenario, const ImportedStrategy& plan, std::int64_t sequence) {
  const SmallMesh mesh = small_mesh(plan.strategy, scenario.run.ranks);
  Scenario twin;
  twin.name = "twin of " + plan.strategy.name;
  twin.model = small_model(scenario.model, mesh, plan.strategy.pipeline.virtual_stages, sequence);
  twin.cluster = "local";
  twin.run = RunSettings{.ranks = mesh.ranks(), .steps = kSteps, .sequence_length = sequence};
  twin.run.seed = scenario.run.seed;
  twin.strategies = {plan};
  twin.strategies.front().strategy = small_strategy(plan.strategy, mesh);
  twin.strategies.front().warnings.clear();
  // What a file could not say is refused here as it is there.
  return scenario_from_json(canonical_json(twin), twin.name);
}

double predicted_seconds(const Scenario& twin) {
  const Replay run = replay(twin, twin.strategies.front());
  return price_run(twin, run.recording, scenario_cluster(twin)).step_time.median;
}

}  // namespace

Scenario twin_of(const Scenario& scenario, const ImportedStrategy& plan) {
  for (std::int64_t sequence = kFewestTokens;; sequence *= 2) {
    Scenario twin = twin_of(scenario, plan, sequence);
    if (sequence == kMostTokens || predicted_seconds(twin) >= kLeastStepSeconds) return twin;
  }
}

RunResult recorded_books(const Scenario& scenario, const std::vector<std::int64_t>& overflows) {
  Recording recording = replay(scenario, scenario.strategies.front(), overflows).recording;
  if (recording.ranks.representative() == 0) return std::move(recording.books);
  const auto first = std::ranges::find(
      recording.others, 0, [](const ClassRecording& each) { return each.ranks.representative(); });
  if (first == recording.others.end()) throw Error(ErrorCode::failed, "rank 0 was not recorded");
  return std::move(first->books);
}

Table books_table(const RunResult& real, const RunResult& recorded) {
  Table table{{{"of rank 0", Align::left}, {"trained"}, {"recorded"}, {"equal", Align::left}}, {}};
  const auto row = [&table](const std::string& what, std::int64_t a, std::int64_t b) {
    if (a == 0 && b == 0) return;
    table.rows.push_back({what, a, b, std::string(a == b ? "yes" : kUnequal)});
  };
  row("bytes of the device at the peak", real.peak_device.total(), recorded.peak_device.total());
  row("bytes reserved of it", real.reserved_device, recorded.reserved_device);
  row("bytes of the host at the peak", real.peak_host.total(), recorded.peak_host.total());
  row("bytes in files at the peak", real.peak_nvme.total(), recorded.peak_nvme.total());
  std::map<std::tuple<std::string, std::string, std::string>, std::pair<std::int64_t, std::int64_t>>
      sent;
  for (const CollectiveTotals& each : real.communication) {
    sent[{each.axis, each.collective, each.group}].first += each.bytes;
  }
  for (const CollectiveTotals& each : recorded.communication) {
    sent[{each.axis, each.collective, each.group}].second += each.bytes;
  }
  for (const auto& [key, bytes] : sent) {
    const auto& [axis, collective, group] = key;
    const std::string along = axis.empty() ? "" : ", " + axis + " axis";
    row("bytes of " + collective + " (" + group + along + ")", bytes.first, bytes.second);
  }
  row("operations", real.op_count, recorded.op_count);
  return table;
}

bool has_equal_books(const RunResult& real, const RunResult& recorded) {
  const Table table = books_table(real, recorded);
  return real.peak_device == recorded.peak_device && real.peak_host == recorded.peak_host &&
         real.peak_nvme == recorded.peak_nvme &&
         std::ranges::none_of(table.rows, [](const std::vector<Cell>& row) {
           return row.back() == Cell(std::string(kUnequal));
         });
}

}  // namespace zl
