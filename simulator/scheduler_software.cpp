// What a scheduler does otherwise under other software.
#include <algorithm>
#include <utility>

#include "simulator/scheduler.h"

namespace zl::sim {

void Scheduler::begin_exchange(const TraceEvent& event) {
  if (event.type != EventType::message || !cluster_.device.software.synchronizes_messages) return;
  exchanges_on_ = &streams_[event.stream];
}

void Scheduler::end_exchange() {
  if (const Stream* stream = std::exchange(exchanges_on_, nullptr)) host_waits_for(*stream);
}

bool Scheduler::waits_for_others(const TraceEvent& event) const {
  const bool validates = event.purpose == static_cast<std::uint8_t>(Purpose::control) &&
                         event.axis == static_cast<std::uint8_t>(Axis::pipeline);
  if (validates && cluster_.device.software.post_validates) return false;
  return meetings_.has_others(self_, event);
}

// Gradients that are reduced when all passes have ended. Rounds come often, and what they reduce is
// of each of them.
bool Scheduler::defers(const TraceEvent& event) const {
  return cluster_.device.software.reduces_last && steady_ != nullptr && !again_ &&
         event.stream == static_cast<std::uint8_t>(StreamId::compute) &&
         event.type == EventType::collective && event.scope.phase == Phase::reduce;
}

// One after the other before the first work of the update; when that can begin.
std::int64_t Scheduler::run_deferred(std::size_t update, std::int64_t start) {
  for (const Deferred& each : std::exchange(deferred_, {})) {
    const std::int64_t work = std::max(each.price.picoseconds, each.price.link_picoseconds);
    timeline_.events[each.index] = {start, start + work};
    start += work;
    before_[each.index] = std::exchange(before_[update], static_cast<std::int32_t>(each.index));
    add_doubt(each.step, each.price);
  }
  return start;
}

}  // namespace zl::sim
