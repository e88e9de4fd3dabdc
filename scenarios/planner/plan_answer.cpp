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

// Those that equal the best come first, the simplest of them in front.
void mark_equals(std::size_t top, Plans& plans) {
  const RunResult& best = plans.best.front().result;
  for (Plan& plan : plans.best) {
    const auto ratio = sim::step_ratio(best, plan.result);
    plan.equals_best = !ratio || !ratio->is_decided();
  }
  const std::size_t shown = std::min(plans.best.size(), top);
  const auto end = plans.best.begin() + static_cast<std::ptrdiff_t>(shown);
  const auto others = std::stable_partition(plans.best.begin(), end,
                                            [](const Plan& plan) { return plan.equals_best; });
  const auto simplest =
      std::min_element(plans.best.begin(), others, [](const Plan& a, const Plan& b) {
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
    plans.best[i].why = why_better(plans.best[i], plans.best[i + 1]);
  }
}

}  // namespace zl
