#include "scenarios/planner/plan_request.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "core/base/error.h"
#include "core/base/text.h"
#include "scenarios/files/clusters.h"
#include "scenarios/files/load_scenario.h"
#include "scenarios/planner/software_limits.h"

namespace zl {
namespace {

constexpr const char* kStates[] = {
    "zero-0", "zero-1", "zero-2", "zero-3", "zero-2-offload-cpu", "zero-3-offload-cpu"};
constexpr std::int64_t kPlannedSteps = 3;
// More micro-batches than this at once keep no device busier.
constexpr std::int64_t kMostMicroBatch = 16;
// Of the likely ones.
constexpr std::int64_t kLikelyMicroBatch = 4;

std::vector<std::int64_t> divisors(std::int64_t number, std::int64_t most) {
  std::vector<std::int64_t> all;
  for (std::int64_t i = 1; i <= std::min(number, most); ++i) {
    if (number % i == 0) all.push_back(i);
  }
  return all;
}

std::vector<RecomputeConfig> recomputations(const std::string& software) {
  std::vector<RecomputeConfig> all(1);
  for (const auto& [attention, activation] :
       {std::pair{true, false}, std::pair{false, true}, std::pair{true, true}}) {
    all.push_back(
        {.mode = RecomputeMode::selective, .attention = attention, .activation = activation});
  }
  if (recomputes_products(software)) {
    all.push_back({.mode = RecomputeMode::selective, .products = true});
  }
  all.push_back({.mode = RecomputeMode::full});
  all.push_back({.mode = RecomputeMode::every_k, .every = 2});
  return all;
}

std::vector<std::int64_t> chunk_counts(std::int64_t layers) {
  std::vector<std::int64_t> all;
  for (const std::int64_t chunks : {1, 2, 3, 4, 6, 8, 12}) {
    if (chunks <= layers) all.push_back(chunks);
  }
  return all;
}

// Only those values that are likely, where there are any.
template <class T, class Likely>
void prefer(std::vector<T>& values, const Likely& likely) {
  std::vector<T> kept;
  std::ranges::copy_if(values, std::back_inserter(kept), likely);
  if (!kept.empty()) values = std::move(kept);
}

}  // namespace

namespace {

// Of stage 3 also the optimizer alone on the host.
void add_offloads(std::vector<Strategy>& states) {
  std::vector<Strategy> more;
  for (const Strategy& state : states) {
    if (state.offload.parameters == Tier::device) continue;
    more.push_back(state);
    more.back().offload.parameters = Tier::device;
  }
  states.insert(states.end(), more.begin(), more.end());
}

}  // namespace

PlanGoal plan_goal(const std::string& text) {
  if (text == "throughput" || text == "cost") return PlanGoal::throughput;
  if (text == "memory") return PlanGoal::memory;
  throw Error(ErrorCode::usage,
              "--goal: \"" + shortened(text) + "\" is not one of throughput, " + "memory, cost");
}

Scenario plan_scenario(const std::string& model, const ScenarioOverrides& overrides) {
  ScenarioOverrides with = overrides;
  with.strategies.assign(std::begin(kStates), std::end(kStates));
  // The first step warms up, the others are alike.
  if (!with.steps) with.steps = kPlannedSteps;
  return load_scenario(model, with);
}

Scenario plan_scenario(const Document& document) {
  ScenarioOverrides overrides;
  overrides.strategies.assign(std::begin(kStates), std::end(kStates));
  overrides.steps = kPlannedSteps;
  const Document plain = document.with("run.micro_batch", "")
                             .with("run.gradient_accumulation", "")
                             .with("run.global_batch", "");
  return scenario_from_json(plain.text(), plain.source(), overrides);
}

const std::vector<std::string>& warnings_of(const PlanRequest& request) {
  return request.scenario.strategies.front().warnings;
}

sim::PlanSpace likely_part(sim::PlanSpace space) {
  prefer(space.states, [](const Strategy& state) {
    return !state.offload.any() && (state.zero.stage == 1 || state.zero.stage == 3);
  });
  prefer(space.schedules, [](PipelineKind kind) { return kind == PipelineKind::one_f_one_b; });
  prefer(space.chunks, [](std::int64_t chunks) { return chunks == 1; });
  prefer(space.replicas, [](std::int64_t replicas) { return replicas == 1; });
  prefer(space.micro_batch, [](std::int64_t size) { return size <= kLikelyMicroBatch; });
  prefer(space.recompute, [](const RecomputeConfig& config) {
    const bool selects = config.mode == RecomputeMode::selective;
    return config.mode == RecomputeMode::none || config.mode == RecomputeMode::full ||
           config.mode == RecomputeMode::automatic ||
           (selects && config.attention && config.activation);
  });
  return space;
}

sim::PlanSpace plan_space(const PlanRequest& request) {
  const Scenario& scenario = request.scenario;
  if (request.global_batch < 1) {
    throw Error(ErrorCode::usage, "--global-batch: say how many sequences a step has");
  }
  const sim::ClusterSpec cluster = scenario_cluster(scenario);
  sim::PlanSpace space;
  space.ranks = scenario.run.ranks;
  space.global_batch = request.global_batch;
  for (const ImportedStrategy& each : scenario.strategies) space.states.push_back(each.strategy);
  add_offloads(space.states);
  const std::int64_t layers = scenario.model.layers;
  space.tensor = divisors(space.ranks, cluster.node_devices);
  if (space.tensor.size() > 1) space.sequence_parallel = {false, true};
  space.pipeline = divisors(space.ranks, layers);
  if (counts_ends(scenario.run.software)) space.layers = layers;
  space.replicas = divisors(space.ranks, space.ranks);
  if (space.pipeline.size() > 1) {
    space.chunks = chunk_counts(layers);
    for (int kind = 0; kind < kPipelineKinds; ++kind) {
      const auto schedule = static_cast<PipelineKind>(kind);
      if (schedule != PipelineKind::one_f_one_b) space.schedules.push_back(schedule);
    }
  }
  space.recompute = recomputations(scenario.run.software);
  space.recomputes_by_stage = recomputes_by_stage(scenario);
  // As few blocks as fit, which is no question where all memory is free.
  const bool has_budget = memory_budget(scenario, cluster) > 0;
  if (has_budget && request.goal != PlanGoal::memory) {
    space.recompute.push_back({.mode = RecomputeMode::automatic});
  }
  space.micro_batch = divisors(request.global_batch, kMostMicroBatch);
  apply_limits(request.limits, space);
  return space;
}

}  // namespace zl
