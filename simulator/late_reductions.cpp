#include "simulator/late_reductions.h"

#include <algorithm>
#include <cstdint>

#include "simulator/event_account.h"

namespace zl::sim {

namespace {

bool is_reduction(const TraceEvent& event) {
  return event.type == EventType::collective && event.scope.phase == Phase::reduce;
}

std::set<std::int64_t> records_of_reductions(const Trace& trace) {
  std::set<std::int64_t> records;
  bool reduces = false;  // the work before, on the stream
  int micro = -1;
  for (const TraceEvent& event : trace.events()) {
    if (!is_on(StreamId::communication, event) || is_of_message(event)) continue;
    if (event.type == EventType::record && reduces) records.insert(event.id);
    if (!takes_time(event)) continue;
    reduces = event.scope.phase == Phase::reduce;
    if (!reduces) continue;
    if (micro >= 0 && event.scope.micro != micro) return {};
    micro = event.scope.micro;
  }
  return records;
}

}  // namespace

bool may_be_late(const TraceEvent& event) {
  return is_on(StreamId::compute, event) && is_reduction(event);
}

std::set<std::size_t> late_reductions(const Trace& trace, const std::vector<EventTime>& times) {
  std::set<std::size_t> late;
  std::int64_t first = INT64_MAX;  // start of the work that follows
  for (std::size_t i = trace.events().size(); i-- > 0;) {
    const TraceEvent& event = trace.events()[i];
    if (!is_on(StreamId::compute, event) || !takes_time(event)) continue;
    if (may_be_late(event) && times[i].start > first) {
      late.insert(i);
    } else {
      first = std::min(first, times[i].start);
    }
  }
  return late;
}

bool is_of_message(const TraceEvent& event) {
  return event.scope.micro >= 0 && event.scope.phase == Phase::other &&
         is_on(StreamId::communication, event);
}

LateReductions::LateReductions(const Trace& trace, double overlap_loss)
    : is_last_(true), records_(records_of_reductions(trace)) {
  hides_nothing_ = overlap_loss >= 1 && are_beside();
}

bool LateReductions::defers(const TraceEvent& event) const {
  if (is_last_ && may_be_late(event)) return true;
  return hides_nothing_ && is_on(StreamId::communication, event) && is_reduction(event);
}

bool LateReductions::ignores(const TraceEvent& wait) const {
  return is_on(StreamId::compute, wait) && records_.contains(wait.id);
}

}  // namespace zl::sim
