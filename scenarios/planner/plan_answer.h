// What a search shows of the plans that it recorded.
// Ownership: values. Threads: pure functions.
#pragma once

#include "scenarios/planner/plan_request.h"

namespace zl {

// Of plans sorted by the goal: the frontier, which of them equal the best, and why each of the
// first `top` is better than the next; the others leave.
void finish_plans(PlanGoal goal, std::size_t top, Plans& plans);

}  // namespace zl
