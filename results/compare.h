// Differences between two runs, and whether the second is a regression.
// Ownership: values. Threads: pure functions.
#pragma once

#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/train/run_result.h"

namespace zl {

// Which way is worse. Informative metrics (parts of another metric) never fail a comparison.
enum class Worse : std::uint8_t { more, less, informative };

struct MetricDelta {
  std::string name;
  double a = 0, b = 0;
  double absolute = 0;  // b - a
  double relative = 0;  // (b - a) / |a|; infinite when a is 0 or only one side is a number;
                        // NaN when only one side has numbers at all
  Worse worse = Worse::informative;
  // Of measured times and rates: they scatter. [low, high] holds `relative` 19 times out of 20
  // (ratio_interval of the steps); NaN: too few steps to say.
  bool scatters = false;
  double low = std::numeric_limits<double>::quiet_NaN();
  double high = std::numeric_limits<double>::quiet_NaN();

  // Whether b is worse than a, or better, by more than `threshold` (0.05: 5 %), beyond the noise.
  bool is_worse(double threshold) const;
  bool is_better(double threshold) const;
  // Whether the steps do not tell on which side of a b is.
  bool is_noise() const { return scatters && !(low > 0) && !(high < 0); }
};

// A run that ended before its first step (out of memory, failed) has none.
bool has_numbers(const RunResult& run);

// Every metric both runs have, the largest relative change first, ties by name. Metrics that are 0
// when unmeasured (rates, step time, MFU) are left out where one side lacks them; metrics that are
// 0 in both are left out too. "failed" (0 or 1) appears when one run has what was asked for and the
// other does not. Of a run without numbers bytes and times are NaN and come last.
std::vector<MetricDelta> compare(const RunResult& a, const RunResult& b);

// The same of runs that were repeated, none of them empty: the run of the median step time stands
// for the others of its side; from four repeats a side on their medians give the interval, else all
// their steps.
std::vector<MetricDelta> compare(std::span<const RunResult> a, std::span<const RunResult> b);

// That run.
const RunResult& representative(std::span<const RunResult> repeats);

// The deltas in which b is worse than a by more than `threshold`.
std::vector<MetricDelta> regressions(std::span<const MetricDelta> deltas, double threshold);

// "5", "5%" -> 0.05; "0.5%" -> 0.005. Throws Error{usage} for anything else: negative values, and
// a bare 0.05, of which nobody knows whether it is 5 % or 0.05 %.
double parse_threshold(std::string_view text);

}  // namespace zl
