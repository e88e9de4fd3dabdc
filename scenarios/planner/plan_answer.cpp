#include "scenarios/planner/plan_answer.h"

#include <algorithm>
#include <string>
#include <tuple>
#include <vector>

#include "scenarios/planner/why.h"
#include "simulator/ratio.h"

namespace zl {
namespace {

// Fastest first, and of the others those that take less memory than all before.
void fill_frontier(Plans& plans) {
  std::vector<const Plan*> order;
  for (const Plan& plan : plans.best) order.push_back(&plan);
  std::ranges::stable_sort(order, {}, [](const Plan* plan) {
    return std::tuple(plan->result.step_time.median, bytes_at_peak(plan->result));
  });
  std::int64_t least = INT64_MAX;
  for (const Plan* plan : order) {
    if (bytes_at_peak(plan->result) >= least) continue;
    least = bytes_at_peak(plan->result);
    plans.frontier.push_back(*plan);
  }
}

bool holds_as_much(const RunResult& best, const RunResult& run) {
  const HeldBySoftware &least = best.software_held, &held = run.software_held;
  if (least.is_known() && held.is_known()) return held.low <= least.high;
  return bytes_at_peak(run) == bytes_at_peak(best);
}

bool is_as_good(PlanGoal goal, const RunResult& best, const RunResult& run) {
  if (goal == PlanGoal::memory) return holds_as_much(best, run);
  const auto ratio = sim::step_ratio(best, run);
  return !ratio || !ratio->is_decided();
}

bool surely_fits(const Plan& plan) { return fits(plan.result) == Fits::yes; }

// The plans of the longer run of the same memory wait behind the faster.
auto place_of(PlanGoal goal, const Plan& plan) {
  return std::tuple(!surely_fits(plan), complexity(plan.strategy.strategy),
                    goal == PlanGoal::memory ? plan.result.step_time.median : 0.0);
}

// Those that equal the best come first, of them what surely fits, and of that the simplest.
void mark_equals(PlanGoal goal, std::size_t top, Plans& plans) {
  const RunResult& best = plans.best.front().result;
  for (Plan& plan : plans.best) plan.equals_best = is_as_good(goal, best, plan.result);
  std::stable_partition(plans.best.begin(), plans.best.end(),
                        [](const Plan& plan) { return plan.equals_best && surely_fits(plan); });
  const std::size_t shown = std::min(plans.best.size(), top);
  const auto end = plans.best.begin() + static_cast<std::ptrdiff_t>(shown);
  const auto others = std::stable_partition(plans.best.begin(), end,
                                            [](const Plan& plan) { return plan.equals_best; });
  const auto first = std::min_element(
      plans.best.begin(), others,
      [goal](const Plan& a, const Plan& b) { return place_of(goal, a) < place_of(goal, b); });
  std::rotate(plans.best.begin(), first, first + 1);
}

// What is not for the goal may be for another reason.
std::string why_before(PlanGoal goal, const Plan& plan, const Plan& next) {
  std::string text;
  if (plan.equals_best && surely_fits(plan) && !surely_fits(next)) text = "surely fits; ";
  const int less = complexity(next.strategy.strategy) - complexity(plan.strategy.strategy);
  if (plan.equals_best && less > 0) text += "simpler; ";
  if (goal != PlanGoal::memory) return text + why_better(plan, next);
  const std::string memory = memory_beside(plan, next);
  return text + (memory.empty() ? "as much memory" : memory) + "; " + time_beside(plan, next);
}

}  // namespace

void finish_plans(PlanGoal goal, std::size_t top, Plans& plans) {
  mark_equals(goal, top, plans);
  fill_frontier(plans);
  if (plans.best.size() > top) {
    plans.best.erase(plans.best.begin() + static_cast<std::ptrdiff_t>(top), plans.best.end());
  }
  for (std::size_t i = 0; i + 1 < plans.best.size(); ++i) {
    plans.best[i].why = why_before(goal, plans.best[i], plans.best[i + 1]);
  }
}

}  // namespace zl
