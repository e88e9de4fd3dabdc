#include "scenarios/planner/standing.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "core/base/error.h"
#include "core/threads/all_cores.h"
#include "scenarios/files/clusters.h"
#include "scenarios/planner/plan.h"
#include "scenarios/planner/plan_candidates.h"
#include "scenarios/run/replay.h"

namespace zl {
namespace {

constexpr std::size_t kSampled = 400;
constexpr double kEqual = 0.001;

std::vector<PlanCandidate> spread(std::vector<PlanCandidate> all) {
  if (all.size() <= kSampled) return all;
  std::vector<PlanCandidate> some;
  for (std::size_t i = 0; i < kSampled; ++i) some.push_back(all[i * all.size() / kSampled]);
  return some;
}

// Seconds that each takes at least; all of the same scenario and space.
std::vector<double> least_seconds(const std::vector<PlanCandidate>& some, PlanProfiles& profiles,
                                  const PlanBounder& bounder) {
  std::vector<DividedPoint> points;
  for (const PlanCandidate& each : some) points.emplace_back(each.point, each.division);
  profiles.prepare_forms(points);
  std::vector<double> seconds(some.size());
  on_all_cores(some.size(), [&](std::size_t i) {
    seconds[i] = static_cast<double>(bounder.time_of(some[i])) * 1e-12;
  });
  return seconds;
}

// The plans that may run, or one of them alone, to be bounded.
class Bounded {
 public:
  Bounded(const Scenario& scenario, sim::PlanSpace space)
      : cluster_(scenario_cluster(scenario)),
        space_(std::move(space)),
        profiles_(scenario, cluster_, space_),
        bounder_(scenario, cluster_, space_, profiles_) {}

  std::vector<double> sampled_seconds(const PlanRequest& request) {
    const std::int64_t budget = memory_budget(request.scenario, cluster_);
    const PlanMemory memory(request.scenario, space_, budget);
    PlanCandidates candidates = plan_candidates(request, space_, budget, memory, bounder_);
    return least_seconds(fitting(spread(std::move(candidates.all)), memory), profiles_, bounder_);
  }

  // Of a space of one point.
  double seconds() {
    const sim::PlanPoint point;
    std::vector<PlanCandidate> alone{{point, space_.division(point).value(), {}}};
    bounder_.bound(alone);
    return least_seconds(alone, profiles_, bounder_).front();
  }

 private:
  const sim::ClusterSpec cluster_;
  const sim::PlanSpace space_;
  PlanProfiles profiles_;
  PlanBounder bounder_;
};

sim::PlanSpace space_of(const Strategy& strategy, std::int64_t ranks) {
  sim::PlanSpace space{.states = {strategy}};
  space.tensor = {strategy.tensor.ranks};
  space.sequence_parallel = {strategy.tensor.sequence_parallel};
  space.pipeline = {strategy.pipeline.ranks};
  space.chunks = {strategy.pipeline.virtual_stages};
  space.schedules = {strategy.pipeline.schedule};
  space.replicas = {strategy.zero.replicas};
  space.recompute = {strategy.recompute};
  space.micro_batch = {strategy.micro_batch};
  space.ranks = ranks;
  const std::int64_t data = ranks / (strategy.tensor.ranks * strategy.pipeline.ranks);
  space.global_batch = data * strategy.micro_batch * strategy.gradient_accumulation;
  return space;
}

}  // namespace

PlanField plan_field(PlanRequest request) {
  request.top = 1;
  request.explains = false;
  Plans plans = find_plans(request);
  if (plans.best.empty()) {
    throw Error(ErrorCode::infeasible, request.scenario.name + ": no plan fits");
  }
  Plan& best = plans.best.front();
  return {std::move(best.strategy), best.result.step_time.median,
          Bounded(request.scenario, plan_space(request)).sampled_seconds(request)};
}

Standing standing_of(const PlanField& field, const Scenario& scenario,
                     const ImportedStrategy& strategy) {
  const Replay run = replay(scenario, strategy);
  const sim::ClusterSpec cluster = scenario_cluster(scenario);
  const std::int64_t budget = memory_budget(scenario, cluster);
  Standing out;
  out.step_seconds = price_run(scenario, run.recording, cluster).step_time.median;
  out.fits = budget == 0 || run.needed() <= budget;
  out.of_best = out.step_seconds / field.best_seconds;
  const double least = Bounded(scenario, space_of(strategy.strategy, scenario.run.ranks)).seconds();
  const auto faster = std::ranges::count_if(
      field.others, [&](double seconds) { return seconds < (1 - kEqual) * least; });
  if (!field.others.empty()) {
    out.share_faster = static_cast<double>(faster) / static_cast<double>(field.others.size());
  }
  return out;
}

}  // namespace zl
