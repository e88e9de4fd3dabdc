#include "scenarios/run/resolve_recompute.h"

#include <algorithm>
#include <cstddef>
#include <vector>

#include "core/pipeline/stage_blocks.h"
#include "scenarios/files/clusters.h"
#include "scenarios/run/judge.h"
#include "scenarios/run/software_bytes.h"

namespace zl {
namespace {

// More recomputed blocks never need more memory: the fewest that fit by bisection, of all ranks at
// once, as none of them holds what others recompute.
Strategy resolved_by_rank(const Scenario& scenario, Strategy strategy,
                          const DeviceProperties& device, const ProgramOptions& options) {
  const PipelineConfig& pipeline = strategy.pipeline;
  const std::vector<std::int64_t> layers = layers_of_stages(scenario.model, pipeline);
  std::vector<std::int64_t> high = layers_of_ranks(pipeline, layers), low(high.size(), 0);
  while (low != high) {
    std::vector<std::int64_t> middle = low;
    for (std::size_t rank = 0; rank < low.size(); ++rank)
      middle[rank] = (low[rank] + high[rank]) / 2;
    strategy.recompute.stage_blocks = spread_blocks(pipeline, layers, middle);
    const std::vector<bool> fits = ranks_within(scenario, strategy, device, options);
    for (std::size_t rank = 0; rank < low.size(); ++rank) {
      if (low[rank] == high[rank]) continue;
      (fits[rank] ? high : low)[rank] = middle[rank] + (fits[rank] ? 0 : 1);
    }
  }
  strategy.recompute.stage_blocks = spread_blocks(pipeline, layers, low);
  return strategy;
}

}  // namespace

Strategy resolve_recompute(const Scenario& scenario, Strategy strategy,
                           const DeviceProperties& device) {
  if (strategy.recompute.mode != RecomputeMode::automatic) return strategy;
  ProgramOptions options = program_options(scenario);
  options.steps = std::min<std::int64_t>(2, options.steps);
  // A GPU's recomputation saves nothing of the host: keeping inputs there takes more of it.
  DeviceProperties recording = device;
  if (!device.memory_is_host) recording.host_memory = 0;
  const bool is_known = held_by_software(scenario, strategy).is_known();
  if (strategy.pipeline.ranks > 1 && !is_known && recomputes_by_stage(scenario)) {
    return resolved_by_rank(scenario, std::move(strategy), recording, options);
  }
  const auto fits = [&](std::int64_t blocks) {
    strategy.recompute.blocks = blocks;
    const HeldBySoftware held = held_by_software(scenario, strategy);
    if (held.is_known()) return held.within(device.memory) == Fits::yes;
    return judge(scenario, strategy, recording, options).fits();
  };
  // Likewise, of all stages the same.
  std::int64_t low = 0, high = scenario.model.layers;
  while (low < high) {
    const std::int64_t middle = (low + high) / 2;
    if (fits(middle)) {
      high = middle;
    } else {
      low = middle + 1;
    }
  }
  strategy.recompute.blocks = low;
  return strategy;
}

}  // namespace zl
