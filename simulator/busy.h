// When something is under way, as a sweep over instants asks.
// Ownership: a value. Threads: used by one thread.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "simulator/timeline.h"

namespace zl::sim {

// When something is under way; asked about instants that never go back.
class Busy {
 public:
  void add(EventTime time) { times_.push_back(time); }
  void sort() {
    std::sort(times_.begin(), times_.end(),
              [](const EventTime& a, const EventTime& b) { return a.start < b.start; });
  }
  // Until when it is under way at `now`, or when it next is; whether it is.
  std::pair<std::int64_t, bool> next(std::int64_t now) {
    while (first_ < times_.size() && times_[first_].end <= now) ++first_;
    if (first_ == times_.size()) return {INT64_MAX, false};
    const EventTime& time = times_[first_];
    return time.start <= now ? std::pair{time.end, true} : std::pair{time.start, false};
  }

 private:
  std::vector<EventTime> times_;
  std::size_t first_ = 0;  // that may end after `now`
};

}  // namespace zl::sim
