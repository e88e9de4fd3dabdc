#include "backends/cuda/event_ring.h"

#include <cuda_runtime_api.h>

#include "backends/cuda/error.h"
#include "core/base/error.h"

namespace zl::cuda {
namespace {

EventRing::Event make_event() {
  CUevent_st* event = nullptr;
  check(cudaEventCreateWithFlags(&event, cudaEventDisableTiming), "cudaEventCreate");
  return {event, [](CUevent_st* each) { cudaEventDestroy(each); }};
}

}  // namespace

std::int64_t EventRing::record(Stream stream) {
  const std::size_t slot = recorded_ % kEvents;
  if (slot == events_.size()) {
    events_.push_back(make_event());
  } else if (events_[slot].use_count() > 1) {
    events_[slot] = make_event();
  }
  check(cudaEventRecord(events_[slot].get(), stream), "cudaEventRecord");
  return recorded_++;
}

void EventRing::wait(Stream waiting, std::int64_t number) const {
  check(cudaStreamWaitEvent(waiting, share(number).get(), 0), "cudaStreamWaitEvent");
}

EventRing::Event EventRing::share(std::int64_t number) const {
  ZL_CHECK(number >= 0 && number < recorded_, "an event is recorded before it is waited for");
  return events_[number % kEvents];
}

}  // namespace zl::cuda
