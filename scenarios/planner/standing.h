// Where a strategy stands among all plans of its model on its GPUs, and why there.
// Ownership: values. Threads: pure functions; they use all cores.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "scenarios/planner/plan_request.h"

namespace zl {

// A plan that may fit, by the least that its step takes.
struct BoundedPlan {
  double seconds = 0;
  RecomputeConfig recompute;
  bool sequence_parallel = false;
};

// What a strategy is held against.
struct PlanField {
  Plan best;                        // of the search
  std::vector<BoundedPlan> others;  // evenly spread over all that may run, in the order of those
};

// Throws Error{infeasible} where no plan fits.
PlanField plan_field(PlanRequest request);

struct Standing {
  Plan chosen;  // recorded without limits of memory, and priced
  Fits fits = Fits::no;
  double of_best = 0;       // its step over that of the best plan
  double share_faster = 0;  // of the field's others, each by the least that a step takes
  // Likewise of those that recompute and cut sequences as it does; nothing: there are none.
  std::optional<double> share_faster_alike = {};
};

// `strategy` is of the scenario, which the field's plans are of as well.
Standing standing_of(const PlanField& field, const Scenario& scenario,
                     const ImportedStrategy& strategy);

// What the best plan does differently and gains, what memory is left, and whether a prediction can
// tell the two apart.
std::string standing_text(const PlanField& field, const Standing& standing);

}  // namespace zl
