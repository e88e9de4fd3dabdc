// How long nothing has moved, as far as this process could see: while it was stopped itself (a
// whole job may be) no time passes. Ownership: a value. Threads: one.
#pragma once

#include <algorithm>
#include <chrono>

namespace zl {

class Stillness {
 public:
  using Clock = std::chrono::steady_clock;
  // Looking less often counts as having been stopped.
  static constexpr std::chrono::seconds kLook{1};

  explicit Stillness(Clock::time_point now = Clock::now()) : last_(now) {}

  void moved(Clock::time_point now = Clock::now()) {
    elapsed_ = {};
    last_ = now;
  }
  bool lasts(std::chrono::milliseconds limit, Clock::time_point now = Clock::now()) {
    elapsed_ += std::min<Clock::duration>(now - last_, kLook);
    last_ = now;
    return elapsed_ >= limit;
  }

 private:
  Clock::time_point last_;
  Clock::duration elapsed_{};
};

}  // namespace zl
