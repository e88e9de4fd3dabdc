#include "backends/cuda/timer.h"

#include <cuda_runtime_api.h>

#include <algorithm>
#include <cmath>

#include "backends/cuda/error.h"
#include "core/base/clock.h"

namespace zl::cuda {
namespace {

std::int64_t between_ns(CUevent_st* from, CUevent_st* to) {
  float milliseconds = 0;
  check(cudaEventElapsedTime(&milliseconds, from, to), "cudaEventElapsedTime");
  return std::llround(double{milliseconds} * 1e6);
}

bool is_done(CUevent_st* event) {
  const cudaError_t status = cudaEventQuery(event);
  if (status == cudaErrorNotReady) {
    cudaGetLastError();  // it would be taken for a failed launch
    return false;
  }
  check(status, "cudaEventQuery");
  return true;
}

}  // namespace

Timer::~Timer() {
  for (const auto& queue : pending_) {
    for (const Pending& each : queue) free_.insert(free_.end(), {each.start, each.stop});
  }
  for (CUevent_st* event : free_) {
    if (event != nullptr) cudaEventDestroy(event);
  }
  if (anchor_ != nullptr) cudaEventDestroy(anchor_);
}

CUevent_st* Timer::take() {
  CUevent_st* event = nullptr;
  if (free_.empty()) {
    check(cudaEventCreate(&event), "cudaEventCreate");
  } else {
    event = free_.back();
    free_.pop_back();
  }
  return event;
}

void Timer::set_anchor(Stream stream) {
  if (anchor_ == nullptr) check(cudaEventCreate(&anchor_), "cudaEventCreate");
  check(cudaEventRecord(anchor_, stream), "cudaEventRecord");
  check(cudaEventSynchronize(anchor_), "cudaEventSynchronize");
  anchor_ns_ = steady_nanoseconds();
}

void Timer::start(StreamId id, Stream stream, Timing* timing) {
  if (anchor_ == nullptr) set_anchor(stream);
  Pending& added = pending_[static_cast<std::size_t>(id)].emplace_back();
  added.timing = timing;
  added.start = take();
  check(cudaEventRecord(added.start, stream), "cudaEventRecord");
}

void Timer::stop(StreamId id, Stream stream) {
  Pending& last = pending_[static_cast<std::size_t>(id)].back();
  last.stop = take();
  check(cudaEventRecord(last.stop, stream), "cudaEventRecord");
}

void Timer::forget(StreamId id) {
  auto& queue = pending_[static_cast<std::size_t>(id)];
  if (queue.empty() || queue.back().stop != nullptr) return;
  free_.push_back(queue.back().start);
  queue.pop_back();
}

void Timer::fill(const Pending& pending) const {
  pending.timing->start_ns = anchor_ns_ + between_ns(anchor_, pending.start);
  pending.timing->end_ns = pending.timing->start_ns + between_ns(pending.start, pending.stop);
}

void Timer::resolve(Stream any_stream) {
  if (anchor_ == nullptr) return;
  bool idle = true;
  for (auto& queue : pending_) {
    while (!queue.empty() && is_done(queue.front().stop)) {
      fill(queue.front());
      free_.insert(free_.end(), {queue.front().start, queue.front().stop});
      queue.pop_front();
    }
    idle = idle && queue.empty();
  }
  if (idle && steady_nanoseconds() - anchor_ns_ > kAnchorLife) set_anchor(any_stream);
}

}  // namespace zl::cuda
