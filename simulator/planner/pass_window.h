// Device memory that a pass has once, however many micro-batches are on their way: gathered weights
// and buckets of gradients. What is brought for the pass after it is that pass's. Ownership: a
// value. Threads: used by one thread.
#pragma once

#include <cstdint>
#include <map>
#include <unordered_set>

#include "core/trace/event.h"

namespace zl::sim {

class PassWindow {
 public:
  std::int64_t bytes() const { return bytes_; }
  bool has_ahead() const { return !ahead_.empty(); }
  // change: of device memory, by the event.
  void bring_ahead(const TraceEvent& event, std::int64_t change) {
    if (change > 0) ahead_[event.id] = change;
  }
  // A pass that comes to weights begins.
  void take_ahead() {
    for (const auto& [address, bytes] : ahead_) {
      inside_.insert(address);
      bytes_ += bytes;
    }
    ahead_.clear();
  }
  // Whether the change is of the window.
  bool moves(const TraceEvent& event, std::int64_t change) {
    if (change > 0) {
      const auto tag = static_cast<MemoryTag>(event.kind);
      if (tag != MemoryTag::parameter && tag != MemoryTag::communication) return false;
      inside_.insert(event.id);
    } else if (change == 0 || ahead_.erase(event.id) > 0) {
      return change != 0;
    } else if (inside_.erase(event.id) == 0) {
      return false;
    }
    bytes_ += change;
    return true;
  }

 private:
  std::unordered_set<std::int64_t> inside_;     // addresses
  std::map<std::int64_t, std::int64_t> ahead_;  // bytes by address
  std::int64_t bytes_ = 0;
};

}  // namespace zl::sim
