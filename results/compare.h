// Differences between two runs, and whether the second is a regression.
// Ownership: values. Threads: pure functions.
#pragma once

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
};

// A run that ended before its first step (out of memory, failed) has none.
bool has_numbers(const RunResult& run);

// Every metric both runs have, the largest relative change first, ties by name. Metrics that are 0
// when unmeasured (rates, step time, MFU) are left out where one side lacks them; metrics that are
// 0 in both are left out too. "failed" (0 or 1) appears when one run is ok and the other is not. Of
// a run without numbers bytes and times are NaN and come last.
std::vector<MetricDelta> compare(const RunResult& a, const RunResult& b);

// The deltas in which b is worse than a by more than `threshold` (0.05: 5 %).
std::vector<MetricDelta> regressions(std::span<const MetricDelta> deltas, double threshold);

// "5%" or "0.05" -> 0.05. Throws Error{usage} for anything else, and for negative values.
double parse_threshold(std::string_view text);

}  // namespace zl
