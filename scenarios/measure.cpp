#include "scenarios/measure.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <unordered_map>

#include "core/device/device.h"

namespace zl {
namespace {

constexpr double kPicosecond = 1e-12;
constexpr double kNanosecond = 1e-9;

// Adds what each event of the compute stream, in order, says about where its step's time went.
class StepParts {
 public:
  // The streams that events were recorded on, by event.
  using Recorded = std::unordered_map<std::int64_t, StreamId>;

  void add(const TraceEvent& event, const Recorded& recorded) {
    if (event.type == EventType::wait) waited_for_ = recorded.at(event.id);
    if (event.timing.end_ns == 0) return;
    const double seconds =
        static_cast<double>(event.timing.end_ns - event.timing.start_ns) * kNanosecond;
    // The stream stood still since its last event because it waited for another stream.
    if (waited_for_ && last_end_ > 0) {
      auto& part = *waited_for_ == StreamId::communication ? parts_.exposed_communication
                                                           : parts_.offload_stall;
      part += static_cast<double>(std::max<std::int64_t>(0, event.timing.start_ns - last_end_)) *
              kNanosecond;
    }
    waited_for_.reset();
    last_end_ = event.timing.end_ns;
    if (event.type == EventType::collective) {
      parts_.exposed_communication += seconds;
    } else if (event.scope.phase == Phase::optimizer) {
      parts_.optimizer += seconds;
    } else {
      parts_.compute += seconds;
    }
  }

  TimeBreakdown average(int steps) const {
    TimeBreakdown mean = parts_;
    for (double* part :
         {&mean.compute, &mean.exposed_communication, &mean.offload_stall, &mean.optimizer}) {
      *part /= std::max(1, steps);
    }
    return mean;
  }

 private:
  TimeBreakdown parts_;
  std::int64_t last_end_ = 0;
  std::optional<StreamId> waited_for_;
};

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
  StepParts parts;
  int first = result.step_seconds.size() > 2 ? 2 : 1, last = 0;
  StepParts::Recorded recorded;
  for (const TraceEvent& event : trace.events()) {
    if (event.type == EventType::record) {
      recorded[event.id] = static_cast<StreamId>(event.stream);
    }
    if (event.stream != static_cast<std::uint8_t>(StreamId::compute)) continue;
    if (event.scope.step < first) continue;
    parts.add(event, recorded);
    last = std::max(last, event.scope.step);
  }
  result.time = parts.average(last - first + 1);
}

double cluster_peak_flops(const sim::ClusterSpec& cluster, DType dtype) {
  // The rates of a machine that was never measured are guesses: no peak is better than a wrong MFU.
  if (cluster.shared_cores > 0 && !cluster.calibration) return 0;
  const double peak = cluster.device.rate(dtype).peak;
  return cluster.shared_cores > 0 ? peak : peak * cluster.devices;
}

}  // namespace zl
