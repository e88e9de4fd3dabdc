// What a scheduler does otherwise under other software.
#include <algorithm>
#include <utility>

#include "simulator/scheduler.h"

namespace zl::sim {

void Scheduler::begin_exchange(const TraceEvent& event) {
  if (event.type != EventType::message || !cluster_.device.software.synchronizes_messages) return;
  exchanges_on_ = &streams_[stream_of(event)];
}

void Scheduler::end_exchange() {
  if (const Stream* stream = std::exchange(exchanges_on_, nullptr)) host_waits_for(*stream);
}

bool Scheduler::reduces_last() const {
  return cluster_.device.software.reduces_last && steady_ != nullptr;
}

bool Scheduler::has_message_stream() const {
  return cluster_.device.software.message_stream && steady_ != nullptr;
}

std::size_t Scheduler::stream_of(const TraceEvent& event) const {
  return has_message_stream() && is_of_message(event) ? kMessageStream : event.stream;
}

// What a message takes beside collectives that were on their way before it: half of the link.
std::int64_t Scheduler::on_shared_link(std::int64_t start, std::int64_t duration) const {
  if (!has_message_stream()) return duration;
  const Stream& other = streams_[static_cast<std::size_t>(StreamId::communication)];
  return duration + std::clamp<std::int64_t>(other.busy_until - start, 0, duration);
}

bool Scheduler::waits_for_others(const TraceEvent& event) const {
  const bool validates = event.purpose == static_cast<std::uint8_t>(Purpose::control) &&
                         event.axis == static_cast<std::uint8_t>(Axis::pipeline);
  if (validates && cluster_.device.software.post_validates) return false;
  return meetings_.has_others(self_, event);
}

// Gradients that are reduced when all passes have ended. Rounds come often, and what they reduce is
// of each of them.
bool Scheduler::defers(const TraceEvent& event) const { return !again_ && late_.defers(event); }

// Before the first work of the update, those that were deferred one after the other; when it can
// begin.
std::int64_t Scheduler::end_reductions(const Issued& issued, std::int64_t start) {
  const std::size_t update = issued.index;
  const Stream& beside = streams_[static_cast<std::size_t>(StreamId::communication)];
  const bool is_first = !std::exchange(steps_[issued.step].is_updating, true);
  if (is_first && late_.are_beside() && beside.ready > start) {
    start = beside.ready;
    if (!again_) before_[update] = beside.cause;
  }
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
