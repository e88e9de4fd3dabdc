// Traces as JSON that https://ui.perfetto.dev and chrome://tracing open.
// Ownership: refers to the traces it is given. Threads: pure functions.
#pragma once

#include <span>
#include <string>

#include "core/trace/trace.h"

namespace zl {

// Of a micro-batch through a stage of a pipeline.
struct StagePass {
  Phase kind = Phase::forward;
  int step = 0, micro = 0, chunk = 0;
  Timing time;
};

// What one trace sends another: an event of each.
struct SentMessage {
  int to = 0;  // so many traces after the one that sends; negative: before it
  std::int32_t sent = 0, received = 0;
};

struct NamedTrace {
  std::string name;              // "zero-3 on sim, ranks 0-7"
  const Trace* trace = nullptr;  // every event with its time, releases and allocations too
  std::span<const StagePass> passes = {};  // of a stage of a pipeline: a track of their own
  std::span<const SentMessage> sent = {};  // to other traces: arrows between processes
};

// Trace Event Format: a process per trace with a track per stream, its steps as asynchronous slices
// (they overlap), of a stage a track with each pass of a micro-batch, counters of the memory of
// each space, whole and by tag, and arrows: from what was recorded to what waited for it on another
// stream, from a send to its receive in another process. Times are microseconds with three
// decimals. What came several times in a row and is held once has `times` among its arguments; the
// gap behind it is theirs. A measured collective has `waited_us`, for the ranks that were not
// there.
std::string perfetto_json(std::span<const NamedTrace> traces);

}  // namespace zl
