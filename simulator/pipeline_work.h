// A pipeline in time: what its ranks work on, one pass of a micro-batch through a stage after the
// other, and what goes between them. The boxes and arrows of a schedule's picture.
// Ownership: values. Threads: pure functions.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "simulator/timeline.h"

namespace zl::sim {

// Work of the compute stream without a change of micro-batch, stage or kind.
struct WorkSpan {
  Phase kind = Phase::forward;  // recomputation is part of the backward that it is for
  int step = 0;
  int micro = -1;          // -1: what a step does for all of them
  int chunk = 0;           // of the rank's stages
  std::int32_t event = 0;  // the first
  EventTime time;
};

// "3"; in the stages of a rank after its first with a point each: "3·", "3··". Empty: of no
// micro-batch.
std::string number_of(const WorkSpan& work);

// `times`: of every event of the trace.
std::vector<WorkSpan> work_spans(const Trace& trace, const std::vector<EventTime>& times);

// A message between two traces, from the start of its send to the end of its receive.
struct Passage {
  std::size_t from = 0, to = 0;         // indices of the traces
  std::int32_t sent = 0, received = 0;  // events of them
  int step = 0, micro = -1;
  EventTime time;
};

// Of the messages along pipelines, by the trace that sends.
std::vector<Passage> passages(std::span<const RankTrace> traces,
                              std::span<const Timeline> timelines);

}  // namespace zl::sim
