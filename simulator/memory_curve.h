// Memory over time: what a trace's allocations add up to once its events have times.
// Ownership: values; LiveBlock refers to label literals. Threads: pure functions.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/rank/ledger.h"
#include "core/trace/trace.h"
#include "simulator/timeline.h"

namespace zl::sim {

// Totals after one allocation or release of the space.
struct MemoryPoint {
  std::int64_t time = 0;   // picoseconds, never decreasing
  std::int32_t event = 0;  // index in the trace
  Ledger::Tags bytes{};

  std::int64_t total() const;
};

// The pool reuses memory in program order, so a block changes hands when the compute stream gets
// there, not when the host asks: each point is at the end of the compute work issued before it.
// `times` has one entry per event of the trace.
std::vector<MemoryPoint> memory_over_time(const Trace& trace, const std::vector<EventTime>& times,
                                          MemorySpace space);

// Index of the first point with the highest total; -1 for an empty curve.
std::ptrdiff_t peak_point(const std::vector<MemoryPoint>& curve);

// The first event after which the space holds the most bytes: the curve's peak; -1: it holds none.
std::int32_t peak_event(const Trace& trace, MemorySpace space);

struct LiveBlock {
  MemoryTag tag{};
  const char* what = "";
  int unit = -1;
  std::int64_t bytes = 0;
  std::int64_t count = 0;
};

// Blocks live right after the given event (-1: none), grouped by tag, label and unit, the largest
// first.
std::vector<LiveBlock> live_after(const Trace& trace, std::int32_t event, MemorySpace space);

// Live blocks of one name, of all units.
struct HeldItem {
  MemoryTag tag{};
  std::string what;
  int first_unit = -1, last_unit = -1;
  std::int64_t blocks = 0, bytes = 0;
};

// What is live right after the given event, the largest first.
std::vector<HeldItem> held_after(const Trace& trace, std::int32_t event, MemorySpace space);

// When the events of a real run ran, picoseconds since the first; untimed ones take no time.
std::vector<EventTime> measured_times(const Trace& trace);

}  // namespace zl::sim
