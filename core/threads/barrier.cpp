#include "core/threads/barrier.h"

namespace zl {

std::optional<Barrier::Round> Barrier::arrive() {
  std::uint64_t state = state_;
  while (true) {
    if (state & kClosed) return std::nullopt;
    const Round round = state >> kRoundShift;
    const std::uint64_t arrived = (state & ((std::uint64_t{1} << kRoundShift) - 1)) / kOne + 1;
    const bool last = arrived == parties_;
    const std::uint64_t next = last ? (round + 1) << kRoundShift : state + kOne;
    if (!state_.compare_exchange_weak(state, next)) continue;
    if (last) waiter_.notify();
    return round;
  }
}

Barrier::Outcome Barrier::wait(Round round, std::chrono::milliseconds timeout) {
  waiter_.wait([&] { return passed(round) || (state_ & kClosed); }, timeout);
  const std::uint64_t state = state_;
  if (state >> kRoundShift != round) return Outcome::passed;
  return state & kClosed ? Outcome::closed : Outcome::timed_out;
}

void Barrier::close() {
  state_ |= kClosed;
  waiter_.notify();
}

bool Barrier::close_at(Round round) {
  std::uint64_t state = state_;
  while (state >> kRoundShift == round) {
    if (!state_.compare_exchange_weak(state, state | kClosed)) continue;
    waiter_.notify();
    return true;
  }
  return false;
}

}  // namespace zl
