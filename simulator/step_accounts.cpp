#include "simulator/step_accounts.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace zl::sim {
namespace {

std::int64_t StepPrice::*account_of(const TraceEvent& event) {
  if (event.type == EventType::collective) return &StepPrice::exposed_communication;
  if (event.type == EventType::copy) return &StepPrice::host;
  return event.type == EventType::op && event.scope.phase == Phase::optimizer
             ? &StepPrice::optimizer
             : &StepPrice::compute;
}

}  // namespace

void StepAccounts::add(const TraceEvent& event, EventTime time) {
  switch (static_cast<StreamId>(event.stream)) {
    case StreamId::compute:
      return add_compute(time, account_of(event));
    case StreamId::communication:
      if (event.type == EventType::collective) add_communication(time);
      return;
    default:
      offload_[event.stream].add(time);
      if (event.type != EventType::op) moving_ += time.end - time.start;
  }
}

void StepAccounts::add_communication(EventTime time) {
  communication_.add(time);
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
  step_.spread = known_error > 0 ? std::hypot(known_error, spread_of_moves()) : spread(host_spread);
  communicating_ = moving_ = 0;
  doubt_.fill(0);
  return std::exchange(step_, StepPrice{});
}

std::pair<std::int64_t, bool> StepAccounts::Busy::next(std::int64_t now) {
  while (first_ < times_.size() && times_[first_].end <= now) ++first_;
  if (first_ == times_.size()) return {INT64_MAX, false};
  const EventTime& time = times_[first_];
  return time.start <= now ? std::pair{time.end, true} : std::pair{time.start, false};
}

void StepAccounts::fill_until(std::int64_t time) {
  while (covered_ < time) {
    const auto [change, communicates] = communication_.next(covered_);
    std::int64_t until = std::min(time, change);
    auto account = communicates ? &StepPrice::exposed_communication : &StepPrice::host;
    for (std::size_t stream = 0; !communicates && stream < kStreams; ++stream) {
      const auto [end, works] = offload_[stream].next(covered_);
      if (works) account = &StepPrice::offload_stall;
      until = std::min(until, end);
    }
    step_.*account += until - covered_;
    covered_ = until;
  }
}

// What is hidden does not move the step's end.
double StepAccounts::spread_of_moves() const {
  if (moving_ == 0 || step_.duration == 0) return 0;
  const double exposed = static_cast<double>(step_.offload_stall) / static_cast<double>(moving_);
  return doubt_[static_cast<std::size_t>(CostClass::copy)] * std::min(1.0, exposed) /
         static_cast<double>(step_.duration);
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
