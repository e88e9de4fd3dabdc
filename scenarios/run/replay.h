// A strategy simulated as if memory had no limit, and traces with the time of every event: what
// reports and exports show.
// Ownership: values. Threads: pure functions.
#pragma once

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

}  // namespace zl
