#include "scenarios/run/resolve_recompute.h"

#include <algorithm>

#include "scenarios/run/judge.h"
#include "scenarios/run/software_bytes.h"

namespace zl {

Strategy resolve_recompute(const Scenario& scenario, Strategy strategy,
                           const DeviceProperties& device) {
  if (strategy.recompute.mode != RecomputeMode::automatic) return strategy;
  ProgramOptions options = program_options(scenario);
  options.steps = std::min<std::int64_t>(2, options.steps);
  // A GPU's recomputation saves nothing of the host: keeping inputs there takes more of it.
  DeviceProperties recording = device;
  if (!device.memory_is_host) recording.host_memory = 0;
  const auto fits = [&](std::int64_t blocks) {
    strategy.recompute.blocks = blocks;
    const HeldBySoftware held = held_by_software(scenario, strategy);
    if (held.is_known()) return held.within(device.memory) == Fits::yes;
    return judge(scenario, strategy, recording, options).fits();
  };
  // More recomputed blocks never need more memory: the fewest that fit by bisection.
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
