#include "core/threads/host_stream.h"

#include <utility>

namespace zl {

HostStream::HostStream(OnFailure on_failure, std::function<void()> on_start)
    : on_failure_(std::move(on_failure)),
      on_start_(std::move(on_start)),
      thread_([this] { loop(); }) {}

HostStream::~HostStream() {
  stop_ = true;
  arrivals_.notify();
  thread_.join();
}

void HostStream::enqueue(std::function<void()> work, Timing* timing) {
  {
    std::lock_guard lock(mutex_);
    queue_.push_back({std::move(work), timing});
  }
  ++enqueued_;
  arrivals_.notify();
}

void HostStream::wait(std::int64_t task) {
  progress_.wait([&] { return completed_ >= task; });
}

void HostStream::rethrow() {
  if (!failed_) return;
  wait(last());
  const std::exception_ptr error = std::exchange(error_, nullptr);
  failed_ = false;
  std::rethrow_exception(error);
}

void HostStream::loop() {
  if (on_start_) on_start_();
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

void HostStream::execute(const Task& task) {
  if (failed_) return;
  try {
    run_timed(task.work, task.timing);
  } catch (...) {
    error_ = std::current_exception();
    failed_ = true;
    if (on_failure_) on_failure_(message_of(error_));
  }
}

}  // namespace zl
