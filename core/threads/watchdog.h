// Ends the process when a call that nothing can interrupt (MPI's own, the kernel's on a file) gets
// nowhere for too long.
// Ownership: owns a thread that looks once a second. Threads: one call at a time.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <thread>
#include <utility>

namespace zl {

// With ErrorCode::failed and one line on stderr, whatever the other threads do.
[[noreturn]] void end_process(const std::string& why);

class Watchdog {
 public:
  // patience: 0: for ever. what: what the error says then; called on a thread of its own while the
  // call is still under way. The process ends with ErrorCode::failed. on_look: called there too,
  // once a second while a call is under way.
  Watchdog(std::chrono::milliseconds patience, std::function<std::string()> what,
           std::function<void()> on_look = {});

  // While it lives a call is under way.
  class Watch {
   public:
    explicit Watch(Watchdog& watchdog) : turns_(watchdog.turns_) { ++turns_; }
    ~Watch() { ++turns_; }
    Watch(const Watch&) = delete;
    Watch& operator=(const Watch&) = delete;

   private:
    std::atomic<std::uint64_t>& turns_;
  };

 private:
  void look(const std::stop_token& stop, std::chrono::milliseconds patience) const;

  std::function<std::string()> what_;
  std::function<void()> on_look_;
  std::atomic<std::uint64_t> turns_{0};  // odd: a call is under way
  std::jthread thread_;
};

// One call that is watched while this lives; parameters as Watchdog's.
class WatchedCall {
 public:
  WatchedCall(std::chrono::milliseconds patience, std::function<std::string()> what,
              std::function<void()> on_look = {})
      : watchdog_(patience, std::move(what), std::move(on_look)) {}

 private:
  Watchdog watchdog_;
  Watchdog::Watch watch_{watchdog_};
};

}  // namespace zl
