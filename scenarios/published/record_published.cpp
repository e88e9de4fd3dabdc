#include "scenarios/published/record_published.h"

#include <utility>

#include "scenarios/files/clusters.h"
#include "scenarios/run/judge.h"
#include "scenarios/run/resolve_recompute.h"

namespace zl {

RecordedRun record_published(Scenario scenario) {
  const sim::ClusterSpec cluster = scenario_cluster(scenario);
  DeviceProperties device = simulated_device(scenario, cluster);
  const Strategy strategy =
      resolve_recompute(scenario, scenario.strategies.front().strategy, device);
  device.memory = device.host_memory = 0;
  ProgramOptions options = program_options(scenario);
  options.device_memory = options.host_memory = 0;
  Recording recording = record_run(scenario, strategy, device, options);
  return {std::move(scenario), std::move(recording)};
}

RunResult price_published(const RecordedRun& run, const sim::ClusterSpec& cluster) {
  return price_run(run.scenario, run.recording, cluster);
}

}  // namespace zl
