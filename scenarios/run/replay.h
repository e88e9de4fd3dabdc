// A strategy simulated as if memory had no limit, and traces with the time of every event: what
// reports and exports show.
// Ownership: values. Threads: pure functions.
#pragma once

#include "results/perfetto.h"
#include "scenarios/run/simulate.h"
#include "scenarios/run/stage_runs.h"

namespace zl {

struct Replay {
  Recording recording;
  RunResult result;                      // as price_run's
  std::vector<sim::Timeline> timelines;  // of rank_traces(), the recording's own first

  const sim::Timeline& timeline() const { return timelines.front(); }

  // Of the device, reserved: what decides whether it fits.
  std::int64_t needed() const { return memory_need(recording.books).reserved; }
};

// overflows: as in RunHooks, where the books are compared with those of an executed run
// (SkippedSteps). None for what a step is, costs and needs (reports, exports, explanations, plans,
// the what-ifs of planner/evaluator.h): that is told of steps that update, and stands beside no
// run's counts. Throws Error as Runner::run does.
Replay replay(const Scenario& scenario, const ImportedStrategy& imported,
              const std::vector<std::int64_t>& overflows = {});

// The trace, its rounds too, with `times`, one per event in picoseconds, in its timings: a block of
// memory changes hands when the compute stream gets there.
Trace timed_trace(const Trace& trace, const std::vector<sim::EventTime>& times);

// One trace with its times, of all ranks or of a stage of a pipeline.
struct TimedTrace {
  std::string name;
  Trace trace;
  std::vector<StagePass> passes = {};  // of a stage
  std::vector<SentMessage> sent = {};  // to other stages

  NamedTrace named() const { return {name, &trace, passes, sent}; }  // refers to this
};

// Of every stage of a priced recording, called NAME and what stage it is; without a pipeline NAME.
std::vector<TimedTrace> timed_traces(const Recording& recording,
                                     std::span<const sim::Timeline> timelines,
                                     const std::string& name);

}  // namespace zl
