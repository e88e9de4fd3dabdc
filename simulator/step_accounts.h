// Where each step's time goes, from when the events of a trace ran: as predicted or as measured.
// Ownership: values. Threads: pure functions.
#pragma once

#include <array>
#include <span>
#include <vector>

#include "core/trace/trace.h"
#include "simulator/timeline.h"

namespace zl::sim {

// The events of one step, and its time.
struct StepSpan {
  int step = StepPrice::kSetup;
  std::size_t first = 0, last = 0;  // indices in the trace, `last` excluded
  std::int64_t begin = 0, end = 0;
  std::array<double, kCostClasses> doubt{};  // picoseconds of standard deviation by class
};

// Relative standard deviations: of the host's time, and of a step time. Where the latter is not
// known (0), a step's spread is what the doubts add up to; of copies and files none is known.
struct KnownErrors {
  double host = 0, step = 0;
  std::array<double, kDTypes> peaks{};  // FLOP/s that no op of a rank exceeds; 0: unknown
};

// When the further times of a round ran that came often, where they were laid out one by one.
struct RoundTimes {
  std::size_t round = 0;         // index in Trace::rounds()
  std::vector<EventTime> times;  // of the events of the second time, of the third, ..
  std::int64_t left_out = 0;     // how many came after the last of them, all like that,
  std::int64_t period = 0;       // and so long: times behind them are without them
};

// `times` has one entry per event; steps follow each other in time. Between the compute stream's
// work of a step, its time is exposed communication where a collective or message runs on the
// communication stream, else a bubble within `held`, else an offload stall where copies, files or
// the host work, else host time. `held`: when a stream waited for other ranks. `rounds`: in order;
// of rounds that are not among them all times took as long as the first.
std::vector<StepPrice> account_steps(const Trace& trace, const std::vector<EventTime>& times,
                                     const std::vector<EventTime>& held,
                                     const std::vector<StepSpan>& steps,
                                     const KnownErrors& errors = {},
                                     std::span<const RoundTimes> rounds = {});

}  // namespace zl::sim
