#include "scenarios/run/measure.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "core/device/device.h"
#include "core/ops/op.h"
#include "simulator/step_accounts.h"

namespace zl {
namespace {

constexpr double kPicosecond = 1e-12;
constexpr std::int64_t kPicosecondsPerNanosecond = 1000;

double seconds(std::int64_t picoseconds) { return static_cast<double>(picoseconds) * kPicosecond; }

sim::EventTime when(const TraceEvent& event) {
  return {event.timing.start_ns * kPicosecondsPerNanosecond,
          event.timing.end_ns * kPicosecondsPerNanosecond};
}

TimeBreakdown parts_of(const sim::StepPrice& price, double scale) {
  const auto part = [scale](std::int64_t time) { return scale * static_cast<double>(time); };
  return {part(price.compute),         part(price.exposed_communication),
          part(price.offload_stall),   part(price.bubble),
          part(price.optimizer),       part(price.exposed_tensor),
          part(price.exposed_pipeline)};
}

constexpr std::int64_t sim::StepPrice::*kMeasured[] = {
    &sim::StepPrice::compute,        &sim::StepPrice::exposed_communication,
    &sim::StepPrice::exposed_tensor, &sim::StepPrice::exposed_pipeline,
    &sim::StepPrice::optimizer,      &sim::StepPrice::offload_stall,
    &sim::StepPrice::bubble,         &sim::StepPrice::host};

// The compute stream's time in the steps from `first` on, as one step. Rounds that are not timed
// took what the timed ones of their row took, each in the same parts.
class MeasuredParts {
 public:
  MeasuredParts(const Trace& trace, int first) : trace_(trace), first_(first) {
    sim::StepSpan span{.step = first, .first = trace.events().size()};
    for (const TraceEvent& event : trace.events()) {
      const std::size_t index = times_.size();
      add(event);
      if (!computes(event)) continue;
      if (event.scope.step >= first) span.first = std::min(span.first, index);
      std::int64_t& end = index < span.first ? span.begin : span.end;
      end = std::max(end, times_.back().end);
    }
    span.last = times_.size();
    span.end = std::max(span.begin, span.end);
    sum_ = account({span});
    add_untimed();
  }

  const sim::StepPrice& sum() const { return sum_; }

 private:
  static bool computes(const TraceEvent& event) {
    return event.stream == static_cast<std::uint8_t>(StreamId::compute);
  }

  // Times are told as if what is not timed had not been.
  void add(const TraceEvent& event) {
    const std::vector<Round>& rounds = trace_.rounds();
    const std::size_t index = times_.size();
    for (; round_ < rounds.size() && rounds[round_].last <= index; ++round_) {
      gap_ |= rounds[round_].count > 1;
    }
    const sim::EventTime time = when(event);
    if (time.end == 0) gap_ |= computes(event) && takes_time(event);
    if (time.end != 0 && computes(event)) {
      if (std::exchange(gap_, false) && event.scope.step >= first_ && round_ > 0) {
        rows_.push_back({.step = event.scope.step, .first = begin_of_row(), .last = index});
        rows_.back().begin = end_before(rows_.back().first);
        rows_.back().end = end_before(index);
        untimed_ += time.start - end_;
      }
      end_ = std::max(end_, time.end);
    }
    times_.push_back(time.end == 0 ? time
                                   : sim::EventTime{time.start - untimed_, time.end - untimed_});
  }

  std::size_t begin_of_row() const {
    const std::vector<Round>& rounds = trace_.rounds();
    std::size_t i = round_ - 1;
    while (i > 0 && rounds[i - 1].last == rounds[i].first) --i;
    return rounds[i].first;
  }

  std::int64_t end_before(std::size_t event) const {
    while (event-- > 0) {
      if (times_[event].end != 0 && computes(trace_.events()[event])) return times_[event].end;
    }
    return 0;
  }

  sim::StepPrice account(const std::vector<sim::StepSpan>& spans) const {
    std::vector<sim::RoundTimes> once;  // no round stands for others here
    for (std::size_t i = 0; i < trace_.rounds().size(); ++i) {
      if (trace_.rounds()[i].count > 1) once.push_back({.round = i, .times = {}});
    }
    sim::StepPrice sum;
    for (const auto& price : sim::account_steps(trace_, times_, {}, spans, {}, once)) {
      sum.duration += price.duration;
      for (const auto part : kMeasured) sum.*part += price.*part;
    }
    return sum;
  }

  void add_untimed() {
    const sim::StepPrice timed = account(rows_);
    if (timed.duration == 0) return;
    const double more = static_cast<double>(untimed_) / static_cast<double>(timed.duration);
    for (const auto part : kMeasured) {
      sum_.*part += static_cast<std::int64_t>(more * static_cast<double>(timed.*part));
    }
    sum_.duration += untimed_;
  }

  const Trace& trace_;
  const int first_;
  std::vector<sim::EventTime> times_;
  std::vector<sim::StepSpan> rows_;  // the timed rounds before what is not timed
  std::size_t round_ = 0;
  bool gap_ = false;          // whether something was not timed since `end_`
  std::int64_t end_ = 0;      // of the compute stream's last timed work
  std::int64_t untimed_ = 0;  // of the steps that count
  sim::StepPrice sum_;
};

}  // namespace

StepTime step_time_of(std::vector<double> step_seconds) {
  if (step_seconds.empty()) return {};
  if (step_seconds.size() > 1) step_seconds.erase(step_seconds.begin());
  std::sort(step_seconds.begin(), step_seconds.end());
  const std::size_t middle = step_seconds.size() / 2;
  const double below = step_seconds[(step_seconds.size() - 1) / 2];
  return {(below + step_seconds[middle]) / 2, step_seconds.front(), step_seconds.back()};
}

void write_predicted_times(const sim::Timeline& timeline,
                           const std::vector<std::int64_t>& stand_ins, RunResult& result) {
  std::map<std::int64_t, sim::StepPrice> prices;
  for (const sim::StepPrice& price : timeline.steps) prices[price.step] = price;
  if (stand_ins.empty()) return;
  for (std::size_t i = 0; i < stand_ins.size(); ++i) {
    result.step_seconds[i] = seconds(prices.at(stand_ins[i]).duration);
  }
  result.step_time = step_time_of(result.step_seconds);
  const sim::StepPrice* typical = nullptr;
  const auto distance = [&](const sim::StepPrice& price) {
    return std::abs(seconds(price.duration) - result.step_time.median);
  };
  for (std::size_t i = stand_ins.size() > 1 ? 1 : 0; i < stand_ins.size(); ++i) {
    const sim::StepPrice& price = prices.at(stand_ins[i]);
    if (typical == nullptr || distance(price) < distance(*typical)) typical = &price;
  }
  if (typical->duration == 0) return;
  // The median of an even number of steps may lie between two of them.
  const double scale = result.step_time.median / static_cast<double>(typical->duration);
  result.time = parts_of(*typical, scale);
  result.step_time_low = scale * static_cast<double>(typical->low());
  result.step_time_high = scale * static_cast<double>(typical->high());
}

void write_measured_times(const Trace& trace, RunResult& result) {
  result.step_time = step_time_of(result.step_seconds);
  const std::size_t steps = result.step_seconds.size();
  const std::size_t first = steps > 1 ? 2 : 1;
  const std::int32_t last = trace.events().empty() ? 0 : trace.events().back().scope.step;
  double traced = 0;  // seconds of the steps that the trace holds
  for (std::size_t step = first; step <= std::min(steps, static_cast<std::size_t>(last)); ++step) {
    traced += result.step_seconds[step - 1];
  }
  if (traced <= 0) return;
  const MeasuredParts parts(trace, static_cast<int>(first));
  result.time = parts_of(parts.sum(), kPicosecond * result.step_time.median / traced);
}

double cluster_peak_flops(const sim::ClusterSpec& cluster, DType dtype) {
  const double peak = cluster.device.rate(dtype).peak;
  if (cluster.shared_cores == 0) return peak * cluster.devices;
  // The rates of a machine whose products of this type were never measured are guesses: no peak is
  // better than a wrong MFU.
  if (!cluster.calibration) return 0;
  const auto& fitted = cluster.calibration->by_ranks;
  const auto has_products = [dtype](const sim::RankCoefficients& entry) {
    return entry.ops[kOpKind<Gemm>][static_cast<std::size_t>(dtype)].samples > 0;
  };
  return std::any_of(fitted.begin(), fitted.end(), has_products) ? peak : 0;
}

}  // namespace zl
