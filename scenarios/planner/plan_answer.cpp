#include "scenarios/planner/plan_answer.h"

#include <algorithm>
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
    return std::tuple(plan->result.step_time.median, plan->result.peak_device.total());
  });
  std::int64_t least = INT64_MAX;
  for (const Plan* plan : order) {
    if (plan->result.peak_device.total() >= least) continue;
    least = plan->result.peak_device.total();
    plans.frontier.push_back(*plan);
  }
}

bool fits_for_certain(const Plan& plan) { return fits(plan.result) == Fits::yes; }

// Those that equal the best come first: before all others what fits for certain, and of it the
// simplest in front.
void mark_equals(std::size_t top, Plans& plans) {
  const RunResult& best = plans.best.front().result;
  for (Plan& plan : plans.best) {
    const auto ratio = sim::step_ratio(best, plan.result);
    plan.equals_best = !ratio || !ratio->is_decided();
  }
  const auto is_sure = [](const Plan& plan) { return plan.equals_best && fits_for_certain(plan); };
  const auto doubtful = std::stable_partition(plans.best.begin(), plans.best.end(), is_sure);
  const bool any_sure = doubtful != plans.best.begin();
  const std::size_t shown = std::min(plans.best.size(), top);
  const auto end = plans.best.begin() + static_cast<std::ptrdiff_t>(shown);
  const auto others = std::stable_partition(plans.best.begin(), end,
                                            [](const Plan& plan) { return plan.equals_best; });
  const auto simplest =
      std::min_element(plans.best.begin(), any_sure ? std::min(doubtful, others) : others,
                       [](const Plan& a, const Plan& b) {
                         return complexity(a.strategy.strategy) < complexity(b.strategy.strategy);
                       });
  std::rotate(plans.best.begin(), simplest, simplest + 1);
}

}  // namespace

void finish_plans(PlanGoal goal, std::size_t top, Plans& plans) {
  if (goal != PlanGoal::memory) mark_equals(top, plans);
  fill_frontier(plans);
  if (plans.best.size() > top) {
    plans.best.erase(plans.best.begin() + static_cast<std::ptrdiff_t>(top), plans.best.end());
  }
  for (std::size_t i = 0; i + 1 < plans.best.size(); ++i) {
    Plan& plan = plans.best[i];
    const Plan& next = plans.best[i + 1];
    plan.why = why_better(plan, next);
    const bool is_surer = next.equals_best && fits_for_certain(plan) && !fits_for_certain(next);
    if (is_surer) plan.why += "; fits for certain, where the next one may not";
  }
}

}  // namespace zl
