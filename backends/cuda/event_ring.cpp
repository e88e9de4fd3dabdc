#include "backends/cuda/event_ring.h"

#include <cuda_runtime_api.h>

#include "backends/cuda/error.h"
#include "core/base/error.h"

namespace zl::cuda {

EventRing::~EventRing() {
  for (CUevent_st* event : events_) cudaEventDestroy(event);
}

std::int64_t EventRing::record(Stream stream) {
  const auto slot = static_cast<std::size_t>(recorded_ % kEvents);
  if (slot == events_.size()) {
    events_.push_back(nullptr);
    check(cudaEventCreateWithFlags(&events_.back(), cudaEventDisableTiming), "cudaEventCreate");
  }
  check(cudaEventRecord(events_[slot], stream), "cudaEventRecord");
  return recorded_++;
}

void EventRing::wait(Stream waiting, std::int64_t number) const {
  ZL_CHECK(number >= 0 && number < recorded_, "an event is recorded before it is waited for");
  const auto slot = static_cast<std::size_t>(number % kEvents);
  check(cudaStreamWaitEvent(waiting, events_[slot], 0), "cudaStreamWaitEvent");
}

}  // namespace zl::cuda
