// The events of one stream: as many CUDA events as fit a ring, however many were recorded.
// Ownership: shares its CUDA events with those who keep them. Threads: one rank's thread; a shared
// event may be waited for and dropped on any.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "backends/cuda/kernel/stream.h"

struct CUevent_st;

namespace zl::cuda {

class EventRing {
 public:
  static constexpr std::int64_t kEvents = 256;
  using Event = std::shared_ptr<CUevent_st>;

  // Marks the end of what the stream holds now; returns the mark's number: 0, 1, 2...
  std::int64_t record(Stream stream);
  // Lets `waiting` go on only when the mark is passed. A mark that the ring has forgotten is
  // replaced by a later one of the same stream, which was also enqueued before this call.
  void wait(Stream waiting, std::int64_t number) const;
  // The mark's event (or that later one's), for a thread to wait for: as long as somebody keeps it,
  // the ring marks nothing else with it.
  Event share(std::int64_t number) const;

 private:
  std::vector<Event> events_;
  std::int64_t recorded_ = 0;
};

}  // namespace zl::cuda
