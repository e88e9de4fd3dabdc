#include "simulator/step_accounts.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace zl::sim {

void StepAccounts::add_communication(EventTime time) {
  communication_.push_back(time);
  communicating_ += time.end - time.start;
}

void StepAccounts::add_compute(EventTime time, std::int64_t StepPrice::*account) {
  fill_until(time.start);
  // A step before may have been closed later than this work starts.
  const std::int64_t from = std::max(time.start, covered_);
  if (time.end <= from) return;
  step_.*account += time.end - from;
  covered_ = time.end;
}

void StepAccounts::add_price(const Price& price) {
  doubt_[static_cast<std::size_t>(price.cost_class)] +=
      static_cast<double>(price.picoseconds) * price.spread;
}

StepPrice StepAccounts::close(int step, std::int64_t begin, std::int64_t end, double host_spread,
                              double known_error) {
  fill_until(end);
  step_.step = step;
  step_.duration = end - begin;
  step_.spread = known_error > 0 ? known_error : spread(host_spread);
  communicating_ = 0;
  doubt_.fill(0);
  return std::exchange(step_, StepPrice{});
}

void StepAccounts::fill_until(std::int64_t time) {
  while (covered_ < time) {
    while (next_ < communication_.size() && communication_[next_].end <= covered_) ++next_;
    const bool any = next_ < communication_.size();
    const std::int64_t start = any ? std::min(time, communication_[next_].start) : time;
    if (covered_ < start) {
      step_.host += start - covered_;
      covered_ = start;
    } else {
      const std::int64_t end = std::min(time, communication_[next_].end);
      step_.exposed_communication += end - covered_;
      covered_ = end;
    }
  }
}

double StepAccounts::spread(double host_spread) const {
  if (step_.duration == 0) return 0;
  auto doubt = doubt_;
  // Hidden communication does not move the step's end.
  const double exposed = communicating_ == 0 ? 1.0
                                             : static_cast<double>(step_.exposed_communication) /
                                                   static_cast<double>(communicating_);
  doubt[static_cast<std::size_t>(CostClass::collective)] *= std::min(1.0, exposed);
  doubt[static_cast<std::size_t>(CostClass::host)] += static_cast<double>(step_.host) * host_spread;
  double sum = 0;
  for (const double each : doubt) sum += each * each;
  return std::sqrt(sum) / static_cast<double>(step_.duration);
}

std::int64_t StepPrice::margin() const {
  constexpr double kNineInTen = 1.645;
  return std::min(duration,
                  static_cast<std::int64_t>(kNineInTen * spread * static_cast<double>(duration)));
}

}  // namespace zl::sim
