// A stream of the host's: a thread of its own runs tasks in the order they were enqueued.
// Ownership: owns its thread and the queued tasks; the destructor runs what is queued and joins.
// Threads: enqueue, last and rethrow come from the owner's thread; wait from any.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <mutex>
#include <string>
#include <thread>

#include "core/base/clock.h"
#include "core/threads/failures.h"
#include "core/threads/waiter.h"
#include "core/trace/event.h"

namespace zl {

// Runs `work` and writes its steady-clock start and end; timing may be null.
template <class Work>
void run_timed(const Work& work, Timing* timing) {
  if (timing != nullptr) timing->start_ns = steady_nanoseconds();
  work();
  if (timing != nullptr) timing->end_ns = steady_nanoseconds();
}

class HostStream {
 public:
  // Told on the stream's thread why a task failed.
  using OnFailure = std::function<void(const std::string& why)>;

  // on_start: what the stream's thread does before its first task; must not throw.
  explicit HostStream(OnFailure on_failure, std::function<void()> on_start = {});
  ~HostStream();
  HostStream(const HostStream&) = delete;
  HostStream& operator=(const HostStream&) = delete;

  void enqueue(std::function<void()> work, Timing* timing);
  // Number of the newest task; numbers count from 1.
  std::int64_t last() const { return enqueued_; }
  bool idle() const { return completed_ == enqueued_; }
  // Whether the task with that number has run or was skipped.
  bool has_run(std::int64_t task) const { return completed_ >= task; }
  // Blocks until the task with that number has run or was skipped. It has no deadline of its own:
  // tasks that wait for other ranks or for files have.
  void wait(std::int64_t task);
  // When a task has failed, the ones behind it are skipped; throws what it threw, once.
  void rethrow();

 private:
  struct Task {
    std::function<void()> work;
    Timing* timing;
  };

  void loop();
  void execute(const Task& task);

  OnFailure on_failure_;
  std::function<void()> on_start_;
  std::mutex mutex_;  // guards queue_
  std::deque<Task> queue_;
  std::atomic<std::int64_t> enqueued_{0}, completed_{0};
  std::atomic<bool> stop_{false}, failed_{false};
  std::exception_ptr error_;  // written before failed_ becomes true
  Waiter arrivals_, progress_;
  std::thread thread_;
};

}  // namespace zl
