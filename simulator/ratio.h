// Two predicted step times beside each other: what of their error bars is left of the difference.
// Threads: pure functions.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "core/train/run_result.h"

namespace zl::sim {

// How many times as long a step of `b` takes as one of `a`, and an interval that holds the true
// ratio nine times out of ten.
struct StepRatio {
  double value = 0, low = 0, high = 0;

  // The interval lies on one side of 1: which one is faster is known.
  bool is_decided() const { return low > 1 || high < 1; }
};

// The logarithm of a prediction's error has a part that all predictions of a machine under a
// software share, and one of its own (RunResult::own_step_error: what held-out runs of a
// calibration, or published runs, scatter around their mean). Of the ratio of two that share it
// only their own parts are left; a prediction beside a measurement, of another machine, number of
// ranks or software keeps its whole bar. Empty where a step time is missing, or both were measured.
std::optional<StepRatio> step_ratio(const RunResult& a, const RunResult& b);

// "1.08x, 0.97 to 1.20, not decided".
std::string readable(const StepRatio& ratio);

// "A step of b takes 1.08x, 0.97 to 1.20, not decided (9 times out of 10; errors that both share
// cancel)". Empty where step_ratio() is. `name`: what the page around it calls b.
std::string step_ratio_line(const RunResult& a, const RunResult& b, std::string_view name = "b");

// Of the predictions among `runs` that ran and differ from `run` in their strategy alone, itself
// included, the one of the shortest step. Null where `run` is no such prediction, or there is no
// other.
const RunResult* fastest_like(const RunResult& run, std::span<const RunResult* const> runs);

}  // namespace zl::sim
