// A reusable barrier that can be closed: whoever arrives late or still waits is turned away.
// Ownership: nothing. Threads: arrive and wait come from the parties, close from any thread.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>

#include "core/threads/waiter.h"

namespace zl {

class Barrier {
 public:
  // Which round of the barrier was joined; rounds count from 0.
  using Round = std::uint64_t;
  enum class Outcome { passed, closed, timed_out };

  explicit Barrier(int parties) : parties_(static_cast<std::uint64_t>(parties)) {}

  // nullopt when closed. Arrival and closing are one atomic state: a round either completes for all
  // of its parties or for none.
  std::optional<Round> arrive();
  Outcome wait(Round round, std::chrono::milliseconds timeout = Waiter::kForever);
  void arrive_and_wait() {
    if (const auto round = arrive()) wait(*round);
  }

  bool passed(Round round) const { return current() != round; }
  Round current() const { return state_ >> kRoundShift; }
  void close();
  // Closes unless the round has completed; returns whether it closed.
  bool close_at(Round round);
  // Forgets everything; only while no party is inside.
  void reset() { state_ = 0; }

 private:
  static constexpr std::uint64_t kClosed = 1;
  static constexpr std::uint64_t kOne = 2;
  static constexpr int kRoundShift = 16;

  std::uint64_t parties_;
  std::atomic<std::uint64_t> state_{0};  // round | arrived (15 bits) | closed (1 bit)
  Waiter waiter_;
};

}  // namespace zl
