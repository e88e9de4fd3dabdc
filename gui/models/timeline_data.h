// From a strategy's trace and times to the timeline, and what one event cost.
// Ownership: values; the returned data refers to the strategy's recording. Threads: pure functions.
#pragma once

#include "gui/models/op_names.h"
#include "gui/plot/timeline_plot.h"
#include "scenarios/planner/study.h"

namespace zl::gui {

// Whose operations are looked at: those of a stage of the pipeline, or the strategy's own, which
// are of the rank with the highest peak.
inline constexpr int kOwnStage = -1;

StageRun run_of(const StrategyStudy& strategy, int stage);
// Its device memory over time.
std::vector<sim::MemoryPoint> memory_of(const StrategyStudy& strategy, int stage);

// Names of the operations; it keeps no part of the recording.
std::shared_ptr<const OpNames> op_names(const Study& study, const StrategyStudy& strategy,
                                        int stage = kOwnStage);

// The stages of a pipeline (pipeline_lanes.h); then, where operations are asked for and without a
// pipeline, phases and layers and the streams that did something; ranks of a data-parallel group do
// the same, so one lane stands for all of them. Times count from the start of the steady step.
struct TimelineChoice {
  int stage = kOwnStage;
  bool operations = true;
};
TimelineData timeline_data(const Study& study, const StrategyStudy& strategy,
                           std::shared_ptr<const OpNames> names, TimelineChoice choice = {});

// The second strategy's lanes below the first's, both from the start of their step.
TimelineData side_by_side(TimelineData first, const QString& first_name, TimelineData second,
                          const QString& second_name);

enum class TotalsBy : std::uint8_t { operation, layer, both, phase };
// What a range of the timeline is spent on, the longest first: time, share, times, name.
// Seconds from the start of the steady step; what reaches over an end counts as far as it is
// inside.
Table range_totals(const StrategyStudy& strategy, const OpNames& names, TimelinePlot::Range range,
                   TotalsBy by, int stage = kOwnStage);

// The last recorded step, which stands for all later ones; seconds.
TimelinePlot::Range steady_step(const StrategyStudy& strategy);

// FLOPs, bytes, price and what held the event up.
Table cost_card(const Study& study, const StrategyStudy& strategy, const OpNames& names,
                std::int32_t event, int stage = kOwnStage);

// Blocks live at a moment of the strategy by tag and label, the largest first: bytes, tag, what,
// blocks, units.
inline constexpr std::size_t kLiveBytes = 0;
Table live_table(const StrategyStudy& strategy, double seconds, int stage = kOwnStage);

}  // namespace zl::gui
