// "Which strategy should I run?": every combination of meshes, schedules, stages, recomputation and
// micro-batches that the core can run, judged by closed forms; the best recorded and priced in
// full. Only what was recorded is shown.
// Ownership: values. Threads: pure functions; a search uses all cores, and its outcome does not
// depend on how many there are.
#pragma once

#include "scenarios/planner/plan_request.h"

namespace zl {

Plans find_plans(const PlanRequest& request, const PlanHooks& hooks = {});

}  // namespace zl
