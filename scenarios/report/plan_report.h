// A plan as a page: what was asked, the plan and its runners-up, and how each software is told to
// run it. Ownership: values. Threads: pure functions.
#pragma once

#include "results/report_sections.h"
#include "scenarios/planner/plan_tables.h"

namespace zl {

// Of plans that were found, at least one; `picked`: the one that is to be run.
ReportPage plan_report(const PlanRequest& request, const Plans& plans, const TrainingBill& bill,
                       const Plan& picked);

}  // namespace zl
