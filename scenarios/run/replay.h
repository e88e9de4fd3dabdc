// A strategy simulated as if memory had no limit, and traces with the time of every event: what
// reports and exports show.
// Ownership: values. Threads: pure functions.
#pragma once

#include "scenarios/run/runner.h"
#include "scenarios/run/simulate.h"

namespace zl {

struct Replay {
  Recording recording;
  sim::Timeline timeline;

  // Of the device, reserved: what decides whether it fits.
  std::int64_t needed() const { return memory_need(recording.books).reserved; }
};

// Throws Error as Runner::run does.
Replay replay(const Scenario& scenario, const ImportedStrategy& imported);

// The trace with `times`, one per event in picoseconds, in its timings: a block of memory changes
// hands when the compute stream gets there.
Trace timed_trace(const Trace& trace, const std::vector<sim::EventTime>& times);

// Rank 0's trace of a run on a backend; "sim": of a replay. Throws Error as Runner::run does, and
// Error{infeasible} when a real run is out of memory.
Trace trace_run(const Runner& runner, const Scenario& scenario, const ImportedStrategy& imported,
                const std::string& backend);

// What to call it: "zero-3 on sim, ranks 0-7".
std::string trace_name(const Scenario& scenario, const ImportedStrategy& imported,
                       const std::string& backend);

}  // namespace zl
