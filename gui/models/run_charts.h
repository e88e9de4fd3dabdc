// From stored runs to the data of their charts.
// Ownership: values; results belong to their caller. Threads: pure functions.
#pragma once

#include <span>

#include "gui/plot/line_plot.h"
#include "gui/plot/parallel_plot.h"
#include "results/store.h"

namespace zl::gui {

struct NamedResult {
  std::int64_t id = 0;
  const RunResult* result = nullptr;
};

// "zero-2, validation": what a model was judged by while it trained.
Curve validation_curve(const QString& name, const std::vector<EvaluationPoint>& evaluations);

// The losses of what runs, then of the results that have some, with their validation; more than
// kMostLossCurves cannot be told apart.
inline constexpr std::size_t kMostLossCurves = 12;
LineData loss_curves(std::span<const LiveRun> live, std::span<const NamedResult> results);

// A line for each run; of what `zerolab tune` varies and judges by, what some run has.
ParallelData runs_side_by_side(std::span<const RunSummary* const> runs);

}  // namespace zl::gui
