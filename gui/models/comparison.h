// Two results side by side: what is configured differently, what that changes, and who holds the
// difference in memory.
// Ownership: values. Threads: pure functions.
#pragma once

#include <string>
#include <vector>

#include "results/format.h"
#include "scenarios/planner/study.h"

namespace zl::gui {

// Changed keys only: value in A, value in B, key, which is longer than a narrow table. Both are
// scenarios with one strategy.
Table configuration_differences(const Document& a, const Document& b);

// Every metric, the largest relative change first, as results/compare orders them. Which of two
// predicted times is better is said only where their errors leave it decided (step_ratio()).
Table metric_differences(const RunResult& a, const RunResult& b);

// Blocks live at each side's peak whose bytes differ, the largest difference first.
Table memory_contributors(const StrategyStudy& a, const StrategyStudy& b);

// The scenario of a study with one of its strategies, every value spelled out.
Document one_strategy_document(const Study& study, const StrategyStudy& strategy);

}  // namespace zl::gui
