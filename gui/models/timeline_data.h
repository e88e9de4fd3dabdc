// From a strategy's trace and times to the timeline, and what one event cost.
// Ownership: values; the returned data refers to the strategy's recording. Threads: pure functions.
#pragma once

#include "gui/plot/timeline_plot.h"
#include "scenarios/planner/study.h"

namespace zl::gui {

// Lanes are the streams that did something; every rank of a data-parallel group does the same, so
// one lane stands for all of them.
TimelineData timeline_data(const Study& study, const StrategyStudy& strategy);

// The last recorded step, which stands for all later ones; seconds.
TimelinePlot::Range steady_step(const StrategyStudy& strategy);

// FLOPs, bytes, price and what held the event up.
Table cost_card(const Study& study, const StrategyStudy& strategy, std::int32_t event);

// Blocks live at a moment of the strategy by tag and label, the largest first: bytes, tag, what,
// blocks, units.
inline constexpr std::size_t kLiveBytes = 0;
Table live_table(const StrategyStudy& strategy, double seconds);

}  // namespace zl::gui
