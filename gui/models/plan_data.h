// From what the planner found to the chart of the Plan page.
// Ownership: values. Threads: pure functions.
#pragma once

#include "gui/plot/scatter_plot.h"
#include "scenarios/planner/plan_request.h"

namespace zl::gui {

// The best plans in their order, then those of the frontier that are not among them: a row of the
// chart each. Pointers into `plans`.
std::vector<const Plan*> shown_plans(const Plans& plans);

// Throughput with its error bar against reserved memory, with the capacity of the device.
ScatterData plan_points(const Plans& plans);

}  // namespace zl::gui
