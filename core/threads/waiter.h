// Blocks threads until a condition over atomics holds: spins briefly, then yields, then sleeps, so
// that more ranks than cores do not burn the processor.
// Ownership: nothing; must outlive its waiters and notifiers. Threads: any.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <thread>

#include "core/threads/stillness.h"

namespace zl {

class Waiter {
 public:
  static constexpr std::chrono::milliseconds kForever{-1};

  // Returns when done() is true, or false when `timeout` of sleeping passed first. done() reads
  // sequentially consistent atomics only.
  template <class Done>
  bool wait(const Done& done, std::chrono::milliseconds timeout = kForever) {
    for (int i = 0; i < kSpins; ++i) {
      if (done()) return true;
      pause();
    }
    for (int i = 0; i < kYields; ++i) {
      if (done()) return true;
      std::this_thread::yield();
    }
    std::unique_lock lock(mutex_);
    ++sleepers_;
    const bool ok =
        timeout == kForever ? (changed_.wait(lock, done), true) : sleep(lock, done, timeout);
    --sleepers_;
    return ok;
  }

  // To be called after every change that can make a done() true. A sleeper counts itself before it
  // looks at the condition a last time and the notifier changes the condition before it looks at
  // the count, so one of the two sees the other.
  void notify() {
    if (sleepers_ == 0) return;
    { std::lock_guard lock(mutex_); }
    changed_.notify_all();
  }

 private:
  static constexpr int kSpins = 100;
  static constexpr int kYields = 50;

  template <class Done>
  bool sleep(std::unique_lock<std::mutex>& lock, const Done& done,
             std::chrono::milliseconds timeout) {
    for (Stillness still; !still.lasts(timeout);) {
      if (changed_.wait_for(lock, std::min<std::chrono::milliseconds>(timeout, Stillness::kLook),
                            done)) {
        return true;
      }
    }
    return done();
  }

  static void pause() {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#endif
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::atomic<int> sleepers_{0};
};

}  // namespace zl
