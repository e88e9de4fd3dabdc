#include "scenarios/measure.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "core/device/device.h"
#include "simulator/step_accounts.h"

namespace zl {
namespace {

constexpr double kPicosecond = 1e-12;
constexpr std::int64_t kPicosecondsPerNanosecond = 1000;

double seconds(std::int64_t picoseconds) { return static_cast<double>(picoseconds) * kPicosecond; }

// Median, minimum and maximum of the steps after the first, where there are more; false: no steps.
bool write_step_time(RunResult& result) {
  std::vector<double> times = result.step_seconds;
  if (times.size() > 1) times.erase(times.begin());
  if (times.empty()) return false;
  std::sort(times.begin(), times.end());
  const std::size_t middle = times.size() / 2;
  result.step_time.median =
      times.size() % 2 == 1 ? times[middle] : (times[middle - 1] + times[middle]) / 2;
  result.step_time.min = times.front();
  result.step_time.max = times.back();
  return true;
}

sim::EventTime when(const TraceEvent& event) {
  return {event.timing.start_ns * kPicosecondsPerNanosecond,
          event.timing.end_ns * kPicosecondsPerNanosecond};
}

// The compute stream's time in the steps from `first` on, as one step.
sim::StepPrice measured_parts(const Trace& trace, int first) {
  sim::StepAccounts accounts;
  const auto add = [&](bool compute, auto&& before) {
    for (const TraceEvent& event : trace.events()) {
      const bool is_compute = event.stream == static_cast<std::uint8_t>(StreamId::compute);
      if (is_compute != compute || event.timing.end_ns == 0) continue;
      before(event);
      accounts.add(event, when(event));
    }
  };
  add(false, [](const TraceEvent&) {});
  std::int64_t end = 0;
  bool counts = false;
  add(true, [&](const TraceEvent& event) {
    if (!counts && event.scope.step >= first) accounts.close(0, 0, end, 0, 0);
    counts = event.scope.step >= first;
    end = std::max(end, when(event).end);
  });
  return accounts.close(first, 0, end, 0, 0);
}

}  // namespace

void write_predicted_times(const sim::Timeline& timeline,
                           const std::vector<std::int64_t>& stand_ins, RunResult& result) {
  std::map<std::int64_t, sim::StepPrice> prices;
  for (const sim::StepPrice& price : timeline.steps) prices[price.step] = price;
  if (stand_ins.empty()) return;
  const std::size_t first = stand_ins.size() > 1 ? 1 : 0;
  std::map<std::int64_t, double>
      share;  // of the steps that count, by the step that stands for them
  for (std::size_t i = 0; i < stand_ins.size(); ++i) {
    result.step_seconds[i] = seconds(prices.at(stand_ins[i]).duration);
    if (i >= first) share[stand_ins[i]] += 1.0 / static_cast<double>(stand_ins.size() - first);
  }
  write_step_time(result);
  const sim::StepPrice* typical = nullptr;
  const auto distance = [&](const sim::StepPrice& price) {
    return std::abs(seconds(price.duration) - result.step_time.median);
  };
  for (const auto& [step, part] : share) {
    const sim::StepPrice& price = prices.at(step);
    result.time.compute += part * seconds(price.compute);
    result.time.exposed_communication += part * seconds(price.exposed_communication);
    result.time.offload_stall += part * seconds(price.offload_stall);
    result.time.optimizer += part * seconds(price.optimizer);
    if (typical == nullptr || distance(price) < distance(*typical)) typical = &price;
  }
  result.step_time_low = seconds(typical->low());
  result.step_time_high = seconds(typical->high());
}

void write_measured_times(const Trace& trace, RunResult& result) {
  if (!write_step_time(result)) return;
  const int first = result.step_seconds.size() > 2 ? 2 : 1;
  const sim::StepPrice sum = measured_parts(trace, first);
  const int last = trace.events().empty() ? 0 : trace.events().back().scope.step;
  const double share = 1.0 / std::max(1, last - first + 1);
  result.time = {share * seconds(sum.compute), share * seconds(sum.exposed_communication),
                 share * seconds(sum.offload_stall), 0, share * seconds(sum.optimizer)};
}

double cluster_peak_flops(const sim::ClusterSpec& cluster, DType dtype) {
  // The rates of a machine that was never measured are guesses: no peak is better than a wrong MFU.
  if (cluster.shared_cores > 0 && !cluster.calibration) return 0;
  const double peak = cluster.device.rate(dtype).peak;
  return cluster.shared_cores > 0 ? peak : peak * cluster.devices;
}

}  // namespace zl
