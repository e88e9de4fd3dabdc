// Where a strategy stands among all plans of its model on its GPUs.
// Ownership: values. Threads: pure functions; they use all cores.
#pragma once

#include "scenarios/planner/plan_request.h"

namespace zl {

// What a strategy is held against.
struct PlanField {
  ImportedStrategy best;  // of the search
  double best_seconds = 0;
  // Of some plans that may fit, the least that a step takes: evenly spread over all that may run,
  // in the order of those.
  std::vector<double> others;
};

// Throws Error{infeasible} where no plan fits.
PlanField plan_field(PlanRequest request);

struct Standing {
  double step_seconds = 0;  // recorded without limits of memory, and priced
  bool fits = false;
  double of_best = 0;       // step_seconds over those of the best plan
  double share_faster = 0;  // of the field's others, each by the least that a step takes
};

// `strategy` is of the scenario, which the field's plans are of as well.
Standing standing_of(const PlanField& field, const Scenario& scenario,
                     const ImportedStrategy& strategy);

}  // namespace zl
