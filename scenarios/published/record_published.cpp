#include "scenarios/published/record_published.h"

#include <algorithm>
#include <utility>

#include "scenarios/files/clusters.h"
#include "scenarios/run/judge.h"
#include "scenarios/run/measure.h"
#include "scenarios/run/resolve_recompute.h"

namespace zl {

RecordedRun record_published(Scenario scenario, TimeKind kind) {
  const sim::ClusterSpec cluster = scenario_cluster(scenario);
  DeviceProperties device = simulated_device(scenario, cluster);
  const Strategy strategy =
      resolve_recompute(scenario, scenario.strategies.front().strategy, device);
  device.memory = device.host_memory = 0;
  ProgramOptions options = program_options(scenario);
  options.device_memory = options.host_memory = 0;
  Recording recording = record_run(scenario, strategy, device, options);
  return {std::move(scenario), std::move(recording), kind};
}

PricedStep price_published(const RecordedRun& run, const sim::ClusterSpec& cluster) {
  sim::ClusterSpec priced_on = sim::with_strategy(cluster, run.recording.strategy);
  if (run.kind == TimeKind::composed) priced_on = timed_apart(std::move(priced_on));
  const std::vector<sim::Timeline> ranks = sim::price(rank_traces(run.recording), priced_on);
  RunResult times;
  times.step_seconds.resize(run.recording.stand_ins.size());
  write_predicted_times(ranks.front(), run.recording.stand_ins, times);
  PricedStep step{times.step_time.median, times.step_time_low, times.step_time_high, 0};
  for (const sim::Timeline& rank : ranks) {
    step.least = std::max(step.least, static_cast<double>(rank.steps.back().least) * 1e-12);
  }
  return step;
}

}  // namespace zl
