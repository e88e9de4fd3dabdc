#include "scenarios/run/strategy_bytes.h"

#include "scenarios/files/clusters.h"
#include "scenarios/run/judge.h"
#include "scenarios/run/resolve_recompute.h"

namespace zl {

SoftwareBytesOrWhy software_bytes_or_why(const Scenario& scenario, const Strategy& asked) {
  const std::string name = scenario_software(scenario);
  if (name.empty() || name == kOwnSoftware) return {};
  Strategy strategy = asked;
  const RecomputeConfig& recompute = strategy.recompute;
  const bool is_resolved = recompute.blocks > 0 || !recompute.stage_blocks.empty();
  if (recompute.mode == RecomputeMode::automatic && !is_resolved) {
    strategy = resolve_recompute(scenario, strategy,
                                 simulated_device(scenario, scenario_cluster(scenario)));
  }
  return bytes_or_why(scenario, strategy);
}

std::optional<SoftwareBytes> software_bytes(const Scenario& scenario, const Strategy& strategy) {
  return software_bytes_or_why(scenario, strategy).bytes;
}

}  // namespace zl
