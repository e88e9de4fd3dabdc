#include "scenarios/planner/recorded_plan.h"

#include <algorithm>

#include "core/pipeline/stage_blocks.h"
#include "core/train/rank_program.h"
#include "scenarios/run/judge.h"
#include "scenarios/run/replay.h"
#include "scenarios/run/software_bytes.h"

namespace zl {
namespace {

// Every step after the first is alike.
constexpr std::int64_t kStepsRecorded = 2;

ProgramOptions two_steps(const Scenario& scenario) {
  ProgramOptions options = program_options(scenario);
  options.recorded_steps = kStepsRecorded;
  return options;
}

Plan priced_plan(const Scenario& scenario, const sim::ClusterSpec& cluster, std::int64_t budget,
                 const ImportedStrategy& strategy, const Recording& recording,
                 const HeldBySoftware& held) {
  Plan plan{.strategy = strategy};
  plan.layers = layers_of_stages(scenario.model, strategy.strategy.pipeline);
  plan.result = price_run(scenario, recording, cluster);
  plan.result.software_held = held;
  write_origin(scenario, plan.strategy, "sim", plan.result);
  plan.result.device_capacity = budget;
  return plan;
}

}  // namespace

std::optional<Plan> recorded_plan(const Scenario& scenario, const sim::ClusterSpec& cluster,
                                  std::int64_t budget, const ImportedStrategy& strategy) {
  const DeviceProperties device = simulated_device(scenario, cluster);
  const Verdict verdict = judge(scenario, strategy.strategy, device, two_steps(scenario));
  if (!verdict.fits()) return std::nullopt;
  return priced_plan(scenario, cluster, budget, strategy, *verdict.recording, verdict.held);
}

Plan unlimited_plan(const Scenario& scenario, const sim::ClusterSpec& cluster, std::int64_t budget,
                    const ImportedStrategy& strategy) {
  DeviceProperties device = simulated_device(scenario, cluster);
  device.memory = device.host_memory = 0;
  ProgramOptions options = two_steps(scenario);
  options.device_memory = options.host_memory = 0;
  const Recording recording = record_run(scenario, strategy.strategy, device, options);
  return priced_plan(scenario, cluster, budget, strategy, recording,
                     held_by_software(scenario, strategy.strategy));
}

void add_blocks(const Scenario& scenario, const sim::ClusterSpec& cluster, bool by_stage,
                const Strategy& refused, std::vector<std::int64_t>& blocks) {
  const PipelineConfig& pipeline = refused.pipeline;
  const std::vector<std::int64_t> layers = layers_of_stages(scenario.model, pipeline);
  if (!by_stage || pipeline.ranks == 1) {
    std::ranges::transform(blocks, layers, blocks.begin(), [](std::int64_t count, std::int64_t of) {
      return std::min(count + 1, of);
    });
    return;
  }
  const std::vector<bool> within =
      ranks_within(scenario, refused, simulated_device(scenario, cluster), two_steps(scenario));
  for (int rank = 0; rank < static_cast<int>(within.size()); ++rank) {
    if (!within[rank]) add_block(pipeline, layers, rank, blocks);
  }
}

}  // namespace zl
