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

#include "core/threads/stillness.h"

namespace zl {

// With ErrorCode::failed and one line on stderr, whatever the other threads do.
[[noreturn]] void end_process(const std::string& why);

// Whether one call is under way for too long, told by who looks at it now and then.
class CallTimer {
 public:
  using Clock = Stillness::Clock;

  explicit CallTimer(std::chrono::milliseconds patience, Clock::time_point now = Clock::now())
      : patience_(patience), still_(now) {}

  // call: the one that is under way now, by a number that no other has; 0: none is.
  bool is_overdue(std::uint64_t call, Clock::time_point now = Clock::now()) {
    if (call != 0 && call == last_) return still_.lasts(patience_, now);
    last_ = call;
    still_.moved(now);
    return false;
  }

 private:
  std::chrono::milliseconds patience_;
  Stillness still_;
  std::uint64_t last_ = 0;
};

struct CallUnderWay {
  std::uint64_t number = 0;           // no other has it; 0: none is under way
  std::function<std::string()> what;  // what the error says, should it last too long
};

// A thread that asks once a second which call is under way, and ends the process with
// ErrorCode::failed and what() when one is for too long. patience: 0: no thread, for ever.
std::jthread watch_calls(std::chrono::milliseconds patience,
                         std::function<CallUnderWay()> under_way);

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

  CallUnderWay under_way() const;

 private:
  std::function<std::string()> what_;
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
