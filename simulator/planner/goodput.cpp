#include "simulator/planner/goodput.h"

#include <algorithm>
#include <cmath>
#include <random>

namespace zl::sim {
namespace {

constexpr int kHalvings = 60;  // of an interval, until doubles are equal

}  // namespace

double goodput(const FailureModel& failures, double interval) {
  const double mean = failures.mean_between;
  const double lasted =
      mean * std::exp(failures.restart / mean) * std::expm1((interval + failures.write) / mean);
  return interval / lasted;
}

double young_interval(const FailureModel& failures) {
  return std::sqrt(2 * failures.write * failures.mean_between);
}

double daly_interval(const FailureModel& failures) {
  const double mean = failures.mean_between;
  if (failures.write >= 2 * mean) return mean;
  const double ratio = failures.write / (2 * mean);
  return young_interval(failures) * (1 + std::sqrt(ratio) / 3 + ratio / 9) - failures.write;
}

// d goodput / d interval = 0 where x = 1 - exp(-x - write / mean), x = interval / mean in (0, 1).
double best_interval(const FailureModel& failures) {
  const double mean = failures.mean_between, write = failures.write / mean;
  double low = 0, high = 1;
  for (int i = 0; i < kHalvings; ++i) {
    const double middle = (low + high) / 2;
    (middle < 1 - std::exp(-middle - write) ? low : high) = middle;
  }
  return mean * high;
}

double played_goodput(const FailureModel& failures, double step_seconds, std::int64_t each,
                      std::int64_t steps, std::uint64_t seed) {
  std::mt19937_64 draw(seed);
  std::exponential_distribution<double> gap(1 / failures.mean_between);
  double now = 0, next_failure = gap(draw);
  // Whether it ends before the next failure, which is else where time goes on.
  const auto lasts = [&](double seconds) {
    const bool ends = now + seconds <= next_failure;
    now = ends ? now + seconds : next_failure;
    if (!ends) next_failure = now + gap(draw);
    return ends;
  };
  for (std::int64_t done = 0; done < steps;) {
    const std::int64_t some = std::min(each, steps - done);
    if (lasts(static_cast<double>(some) * step_seconds + failures.write)) {
      done += some;
      continue;
    }
    while (!lasts(failures.restart)) {
    }
  }
  return static_cast<double>(steps) * step_seconds / now;
}

}  // namespace zl::sim
