#include "backends/cpu/stream.h"

#include <utility>

#ifdef _OPENMP
#include <omp.h>
#endif

namespace zl::cpu {

Stream::Stream(OnFailure on_failure)
    : on_failure_(std::move(on_failure)), thread_([this] { loop(); }) {}

Stream::~Stream() {
  stop_ = true;
  arrivals_.notify();
  thread_.join();
}

void Stream::enqueue(std::function<void()> work, Timing* timing) {
  {
    std::lock_guard lock(mutex_);
    queue_.push_back({std::move(work), timing});
  }
  ++enqueued_;
  arrivals_.notify();
}

void Stream::wait(std::int64_t task) {
  progress_.wait([&] { return completed_ >= task; });
}

void Stream::rethrow() {
  if (!failed_) return;
  wait(last());
  const std::exception_ptr error = std::exchange(error_, nullptr);
  failed_ = false;
  std::rethrow_exception(error);
}

void Stream::loop() {
#ifdef _OPENMP
  omp_set_num_threads(1);
#endif
  while (true) {
    arrivals_.wait([&] { return enqueued_ > completed_ || stop_; });
    if (enqueued_ == completed_) return;
    {
      Task task;
      {
        std::lock_guard lock(mutex_);
        task = std::move(queue_.front());
        queue_.pop_front();
      }
      execute(task);
    }
    ++completed_;
    progress_.notify();
  }
}

void Stream::execute(const Task& task) {
  if (failed_) return;
  try {
    run_timed(task.work, task.timing);
  } catch (...) {
    error_ = std::current_exception();
    failed_ = true;
    if (on_failure_) on_failure_(message_of(error_));
  }
}

}  // namespace zl::cpu
