#include "scenarios/planner/plan.h"

#include <chrono>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/base/error.h"
#include "core/base/nearest.h"
#include "scenarios/planner/plan_search.h"

namespace zl {
namespace {

// Sequences are halved, and GPUs doubled, so often at most.
constexpr int kMostChanges = 6;

bool any_fits(const PlanRequest& request) {
  try {
    const PlanHooks none;
    return !PlanSearch(request, none, plan_space(request)).find().best.empty();
  } catch (const Error& error) {
    if (error.code() != ErrorCode::invalid) throw;
    return false;  // what cannot be divided so is no change to make
  }
}

// The first of the changed requests that has a plan which fits.
template <class Change>
std::optional<Scenario> first_that_fits(PlanRequest request, const Change& change) {
  request.goal = PlanGoal::memory;
  request.top = 1;
  request.explains = false;
  request.any_will_do = true;
  for (int i = 0; i < kMostChanges; ++i) {
    if (!change(request)) return std::nullopt;
    if (any_fits(request)) return std::move(request.scenario);
  }
  return std::nullopt;
}

// "; a plan would fit without --constrain, with sequences of 2048 tokens, or on 16 GPUs"; empty:
// none of these helps.
std::string changes_that_fit(const PlanRequest& request) {
  const auto unlimited = first_that_fits(request, [](PlanRequest& changed) {
    const bool had_limits = !changed.limits.empty();
    changed.limits.clear();
    return had_limits;
  });
  const auto shorter = first_that_fits(request, [](PlanRequest& changed) {
    changed.scenario.run.sequence_length /= 2;
    return changed.scenario.run.sequence_length > 0;
  });
  const auto more = first_that_fits(request, [](PlanRequest& changed) {
    changed.scenario.run.ranks *= 2;
    return true;
  });
  std::vector<std::string> ways;
  if (unlimited) ways.emplace_back("without --constrain");
  if (shorter) {
    ways.push_back("with sequences of " + std::to_string(shorter->run.sequence_length) + " tokens");
  }
  if (more) ways.push_back("on " + std::to_string(more->run.ranks) + " GPUs");
  return ways.empty() ? "" : "; a plan would fit " + join(ways, ", or ");
}

// The best of where it most likely is, long before all have been tried.
std::optional<Plan> likely_best(PlanRequest request, const PlanHooks& hooks,
                                const sim::PlanSpace& space) {
  request.top = 1;
  request.explains = false;
  try {
    const PlanHooks quiet{.progress = {}, .found = {}, .cancelled = hooks.cancelled};
    Plans first = PlanSearch(request, quiet, likely_part(space)).find();
    if (first.best.empty()) return std::nullopt;
    if (hooks.found) hooks.found(first);
    return std::move(first.best.front());
  } catch (const Error& error) {
    if (error.code() != ErrorCode::invalid) throw;  // the others may divide the batch
    return std::nullopt;
  }
}

}  // namespace

Plans find_plans(const PlanRequest& request, const PlanHooks& hooks) {
  const auto start = std::chrono::steady_clock::now();
  const auto elapsed = [start] {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  };
  const sim::PlanSpace space = plan_space(request);
  std::optional<Plan> likely = likely_best(request, hooks, space);
  const double first_seconds = likely ? elapsed() : 0;
  Plans plans = PlanSearch(request, hooks, space).find(std::move(likely));
  plans.first_seconds = first_seconds;
  plans.seconds = elapsed();
  if (!plans.shortage.empty()) plans.shortage += changes_that_fit(request);
  return plans;
}

}  // namespace zl
