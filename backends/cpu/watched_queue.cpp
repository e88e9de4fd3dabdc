#include <unistd.h>

#include <mutex>
#include <utility>

#include "backends/cpu/io_queue.h"
#include "core/threads/watchdog.h"

namespace zl::cpu {
namespace {

std::string path_of(int file) {
  char path[4096];
  const ssize_t size =
      readlink(("/proc/self/fd/" + std::to_string(file)).c_str(), path, sizeof path);
  return size > 0 ? std::string(path, size) : "file " + std::to_string(file);
}

class WatchedQueue final : public IoQueue {
 public:
  WatchedQueue(std::unique_ptr<IoQueue> queue, std::chrono::milliseconds timeout)
      : queue_(std::move(queue)),
        timeout_(timeout),
        watchdog_(timeout, [this] { return what(); }) {}

  std::string name() const override { return queue_->name(); }

  void submit(std::span<const IoRequest> requests, std::span<const std::uint64_t> tags) override {
    if (requests.empty()) return;
    {
      const std::lock_guard lock(mutex_);
      newest_ = requests.back();
    }
    const Watchdog::Watch watch(watchdog_);
    queue_->submit(requests, tags);
  }

  void wait(std::int64_t least, std::vector<IoResult>& results) override {
    const Watchdog::Watch watch(watchdog_);
    queue_->wait(least, results);
  }

 private:
  std::string what() {
    const std::lock_guard lock(mutex_);
    return path_of(newest_.file) + ": nothing was " + (newest_.write ? "written" : "read") +
           " for " + std::to_string(timeout_.count()) + " ms (" + std::to_string(newest_.bytes) +
           " bytes at " + std::to_string(newest_.offset) + " under way): ending this process";
  }

  std::unique_ptr<IoQueue> queue_;
  std::chrono::milliseconds timeout_;
  std::mutex mutex_;  // guards newest_
  IoRequest newest_;
  Watchdog watchdog_;
};

}  // namespace

std::unique_ptr<IoQueue> watched(std::unique_ptr<IoQueue> queue,
                                 std::chrono::milliseconds timeout) {
  return std::make_unique<WatchedQueue>(std::move(queue), timeout);
}

}  // namespace zl::cpu
