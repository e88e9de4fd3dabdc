// How far the streams of a recorded rank have come, event by event.
// Ownership: a value. Threads: used by one thread.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <unordered_map>

#include "core/base/stream.h"
#include "core/trace/trace.h"
#include "simulator/late_reductions.h"
#include "simulator/timeline.h"

namespace zl::sim {

class StreamEnds {
 public:
  // messages_apart: as PipelineCosts.
  explicit StreamEnds(bool messages_apart) : messages_apart_(messages_apart) {}

  void follow(const TraceEvent& event, EventTime time) {
    std::int64_t& end =
        end_[messages_apart_ && is_of_message(event) ? kMessageStream : event.stream];
    idle_ = takes_time(event) ? std::max<std::int64_t>(0, time.start - end) : 0;
    if (takes_time(event)) end = std::max(end, time.end);
    if (event.type == EventType::record) recorded_[event.id] = end;
    if (event.type != EventType::wait) return;
    const auto found = recorded_.find(event.id);
    if (found != recorded_.end()) end = std::max(end, found->second);
  }
  std::int64_t of(std::uint8_t stream) const { return end_[stream]; }
  // Picoseconds that the newest event's stream stood still before it, for no other stream.
  std::int64_t idle() const { return idle_; }

 private:
  bool messages_apart_;
  std::array<std::int64_t, kStreamsWithMessages> end_{};
  std::unordered_map<std::int64_t, std::int64_t> recorded_;  // by event id
  std::int64_t idle_ = 0;
};

}  // namespace zl::sim
