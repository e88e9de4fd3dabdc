// Which part of a step an event's time counts to.
// Ownership: values. Threads: pure functions.
#pragma once

#include <cstdint>

#include "core/base/collective_kind.h"
#include "core/base/stream.h"
#include "core/trace/trace.h"
#include "simulator/timeline.h"

namespace zl::sim {

using Account = std::int64_t StepPrice::*;

inline bool communicates(const TraceEvent& event) {
  return event.type == EventType::collective || event.type == EventType::message;
}

inline bool is_on(StreamId stream, const TraceEvent& event) {
  return event.stream == static_cast<std::uint8_t>(stream);
}

inline Account account_of_axis(const TraceEvent& event) {
  const auto axis = static_cast<Axis>(event.axis);
  if (axis == Axis::tensor) return &StepPrice::exposed_tensor;
  if (axis == Axis::pipeline) return &StepPrice::exposed_pipeline;
  return &StepPrice::exposed_communication;
}

inline Account account_of(const TraceEvent& event) {
  if (communicates(event)) return account_of_axis(event);
  if (event.type == EventType::copy) return &StepPrice::host;
  return event.type == EventType::op && event.scope.phase == Phase::optimizer
             ? &StepPrice::optimizer
             : &StepPrice::compute;
}

}  // namespace zl::sim
