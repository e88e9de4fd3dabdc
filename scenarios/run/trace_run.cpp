#include "scenarios/run/trace_run.h"

#include "core/base/error.h"
#include "core/base/log.h"
#include "scenarios/run/replay.h"
#include "simulator/memory_curve.h"

namespace zl {

std::vector<TimedTrace> trace_run(const Runner& runner, const Scenario& scenario,
                                  const ImportedStrategy& imported, const std::string& backend) {
  const std::string name = trace_name(scenario, imported, backend);
  if (runner.backends().capabilities(backend).is_recording) {
    const RunResult result = runner.run(scenario, imported, backend);
    if (result.outcome == Outcome::out_of_memory) {
      log_warning(imported.strategy.name + " does not fit: " + result.message +
                  "; traced as if it did");
    }
    const Replay simulated = replay(scenario, imported);
    return timed_traces(simulated.recording, simulated.timelines, name);
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
  std::vector<TimedTrace> one;
  one.push_back({name, std::move(timed)});
  return one;
}

std::string trace_name(const Scenario& scenario, const ImportedStrategy& imported,
                       const std::string& backend) {
  const std::int64_t last = scenario.run.ranks - 1;
  return imported.strategy.name + " on " + backend +
         (last > 0 ? ", ranks 0-" + std::to_string(last) : ", rank 0");
}

}  // namespace zl
