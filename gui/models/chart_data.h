// From strategies of a study to the data of each chart.
// Ownership: values. Threads: pure functions.
#pragma once

#include "core/base/memory.h"
#include "gui/plot/bar_plot.h"
#include "gui/plot/line_plot.h"
#include "gui/plot/scatter_plot.h"
#include "scenarios/planner/study.h"

namespace zl::gui {

enum class MemoryTier : std::uint8_t { device, host, nvme };

using Strategies = std::vector<const StrategyStudy*>;

// Peak bytes of one rank by tag, with the capacity of the device.
BarData memory_bars(const Study& study, const Strategies& shown, MemoryTier tier);
// Peak bytes by tag of every stage of a pipeline; `strategy` has one.
BarData stage_memory_bars(const Study& study, const StrategyStudy& strategy);
// Where one step's time goes.
BarData time_bars(const Strategies& shown);
// Bytes that one rank sends in a step, by collective, axis of the mesh and link, and moves between
// its tiers; per parameter of the model when asked.
BarData traffic_bars(const Study& study, const Strategies& shown, bool per_parameter);
ScatterData tradeoff(const Study& study, const Strategies& shown);
// Device bytes over the recorded steps, each curve to its strategy's end. `one_step`: of the last
// step alone, as a share of it, so that a slow strategy does not squeeze the others.
LineData memory_lines(const Study& study, const Strategies& shown, bool one_step = false);

}  // namespace zl::gui
