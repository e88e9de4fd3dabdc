#include "scenarios/planner/judged_plan.h"

#include <algorithm>

namespace zl {

void keep_best(PlanGoal goal, std::size_t most, std::vector<JudgedPlan>& kept) {
  std::ranges::stable_sort(kept, {},
                           [&](const JudgedPlan& each) { return goal_value(goal, each.form); });
  std::size_t exact = 0, others = 0;
  std::erase_if(
      kept, [&](const JudgedPlan& each) { return ++(each.form.is_exact ? exact : others) > most; });
}

}  // namespace zl
