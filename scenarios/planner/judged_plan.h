// A candidate that was judged by its closed form.
// Ownership: values. Threads: pure functions.
#pragma once

#include <cstddef>
#include <vector>

#include "scenarios/planner/plan_candidates.h"

namespace zl {

struct JudgedPlan {
  PlanCandidate candidate;
  std::vector<std::int64_t> blocks;  // of each stage, of automatic recomputation
  sim::ClosedForm form;
};

// By their closed forms the best first, `most` of them: likewise of those whose memory is in doubt,
// which may all turn out too large and leave the others their room.
void keep_best(PlanGoal goal, std::size_t most, std::vector<JudgedPlan>& kept);

}  // namespace zl
