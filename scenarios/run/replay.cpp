#include "scenarios/run/replay.h"

#include "core/base/error.h"
#include "core/base/log.h"
#include "scenarios/files/clusters.h"
#include "scenarios/run/judge.h"
#include "scenarios/run/resolve_recompute.h"
#include "simulator/memory_curve.h"

namespace zl {

Replay replay(const Scenario& scenario, const ImportedStrategy& imported) {
  const sim::ClusterSpec cluster = scenario_cluster(scenario);
  Replay out;
  DeviceProperties device = simulated_device(scenario, cluster);
  const Strategy strategy = resolve_recompute(scenario, imported.strategy, device);
  device.memory = device.host_memory = 0;
  ProgramOptions options = program_options(scenario);
  options.host_memory = 0;
  out.recording = record_run(scenario, strategy, device, options);
  price_run(scenario, out.recording, cluster, &out.timeline);
  return out;
}

Trace timed_trace(const Trace& trace, const std::vector<sim::EventTime>& times) {
  constexpr std::int64_t kPicoseconds = 1000;  // per nanosecond
  std::vector<sim::EventTime> all = times;
  for (std::size_t space = 0; space < kMemorySpaces; ++space) {
    for (const sim::MemoryPoint& point :
         sim::memory_over_time(trace, times, static_cast<MemorySpace>(space))) {
      all[point.event] = {point.time, point.time};
    }
  }
  Trace timed;
  std::size_t index = 0;
  for (TraceEvent event : trace.events()) {
    const sim::EventTime& time = all[index++];
    event.timing = {time.start / kPicoseconds, time.end / kPicoseconds};
    timed.append(event);
  }
  return timed;
}

Trace trace_run(const Runner& runner, const Scenario& scenario, const ImportedStrategy& imported,
                const std::string& backend) {
  if (runner.backends().capabilities(backend).is_recording) {
    const RunResult result = runner.run(scenario, imported, backend);
    if (result.outcome == Outcome::out_of_memory) {
      log_warning(imported.strategy.name + " does not fit: " + result.message +
                  "; traced as if it did");
    }
    const Replay simulated = replay(scenario, imported);
    return timed_trace(simulated.recording.trace, simulated.timeline.events);
  }
  Trace timed;
  RunHooks hooks;
  hooks.on_trace = [&](const Trace& trace) {
    timed = timed_trace(trace, sim::measured_times(trace));
  };
  const RunResult result = runner.run(scenario, imported, backend, hooks);
  if (result.outcome != Outcome::ok) {
    throw Error(ErrorCode::infeasible, imported.strategy.name + ": " + result.message);
  }
  return timed;
}

std::string trace_name(const Scenario& scenario, const ImportedStrategy& imported,
                       const std::string& backend) {
  const std::int64_t last = scenario.run.ranks - 1;
  return imported.strategy.name + " on " + backend +
         (last > 0 ? ", ranks 0-" + std::to_string(last) : ", rank 0");
}

}  // namespace zl
