// From a strategy's trace and times to the timeline, and what one event cost.
// Ownership: values; the returned data refers to the strategy's recording. Threads: pure functions.
#pragma once

#include "gui/models/op_names.h"
#include "gui/plot/timeline_plot.h"
#include "scenarios/planner/study.h"

namespace zl::gui {

// Names of the strategy's operations; it keeps no part of the recording.
std::shared_ptr<const OpNames> op_names(const Study& study, const StrategyStudy& strategy);

// Phases and layers, then the streams that did something; every rank of a data-parallel group does
// the same, so one lane stands for all of them. Times count from the start of the steady step.
TimelineData timeline_data(const Study& study, const StrategyStudy& strategy,
                           std::shared_ptr<const OpNames> names);

// The second strategy's lanes below the first's, both from the start of their step.
TimelineData side_by_side(TimelineData first, const QString& first_name, TimelineData second,
                          const QString& second_name);

enum class TotalsBy : std::uint8_t { operation, layer, both, phase };
// What a range of the timeline is spent on, the longest first: time, share, times, name.
// Seconds from the start of the steady step; what reaches over an end counts as far as it is
// inside.
Table range_totals(const StrategyStudy& strategy, const OpNames& names, TimelinePlot::Range range,
                   TotalsBy by);

// The last recorded step, which stands for all later ones; seconds.
TimelinePlot::Range steady_step(const StrategyStudy& strategy);

// FLOPs, bytes, price and what held the event up.
Table cost_card(const Study& study, const StrategyStudy& strategy, const OpNames& names,
                std::int32_t event);

// Blocks live at a moment of the strategy by tag and label, the largest first: bytes, tag, what,
// blocks, units.
inline constexpr std::size_t kLiveBytes = 0;
Table live_table(const StrategyStudy& strategy, double seconds);

}  // namespace zl::gui
