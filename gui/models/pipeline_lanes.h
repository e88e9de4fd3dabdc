// A pipeline as its textbook picture: a lane per stage, a box for every pass of a micro-batch
// through it, coloured by kind and numbered, and arrows for what goes between them.
// Ownership: values. Threads: pure functions.
#pragma once

#include "gui/plot/timeline_plot.h"
#include "results/format.h"
#include "scenarios/planner/study.h"

namespace zl::gui {

// Lanes of all stages and the arrows between them, behind those that `data` has. zero: seconds that
// its times count from. A span's category is the Phase, its event the first of the work's.
void add_stage_lanes(const StrategyStudy& strategy, double zero, TimelineData& data);

// What the work is that begins with this event of the stage: how long it takes, how long the stage
// was idle before. zero: as above.
Table work_card(const StrategyStudy& strategy, double zero, int stage, std::int32_t event);

}  // namespace zl::gui
