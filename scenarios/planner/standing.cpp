#include "scenarios/planner/standing.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "core/base/bytes.h"
#include "core/base/error.h"
#include "core/threads/all_cores.h"
#include "scenarios/files/clusters.h"
#include "scenarios/planner/plan.h"
#include "scenarios/planner/plan_candidates.h"
#include "scenarios/planner/recorded_plan.h"
#include "scenarios/planner/why.h"
#include "simulator/ratio.h"

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

  std::vector<BoundedPlan> sampled(const PlanRequest& request) {
    const std::int64_t budget = memory_budget(request.scenario, cluster_);
    const PlanMemory memory(request.scenario, space_, budget);
    PlanCandidates candidates = plan_candidates(request, space_, budget, memory, bounder_);
    std::vector<PlanCandidate> some;
    for (const FittingCandidate& each : fitting(spread(std::move(candidates.all)), memory)) {
      some.push_back(each.candidate);
    }
    const std::vector<double> seconds = least_seconds(some, profiles_, bounder_);
    std::vector<BoundedPlan> plans;
    for (std::size_t i = 0; i < some.size(); ++i) {
      const sim::PlanPoint& point = some[i].point;
      plans.push_back({seconds[i], space_.recompute[point.recompute],
                       space_.sequence_parallel[point.sequence_parallel]});
    }
    return plans;
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

sim::PlanSpace space_of(const Strategy& strategy, std::int64_t ranks, std::int64_t layers) {
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
  space.layers = layers;
  const std::int64_t data = ranks / (strategy.tensor.ranks * strategy.pipeline.ranks);
  space.global_batch = data * strategy.micro_batch * strategy.gradient_accumulation;
  return space;
}

// Of the plans that `counts`, those that take less; nothing where there are none.
template <class Counts>
std::optional<double> share_below(double seconds, const std::vector<BoundedPlan>& plans,
                                  const Counts& counts) {
  std::int64_t all = 0, faster = 0;
  for (const BoundedPlan& each : plans) {
    if (!counts(each)) continue;
    ++all;
    if (each.seconds < (1 - kEqual) * seconds) ++faster;
  }
  if (all == 0) return std::nullopt;
  return static_cast<double>(faster) / static_cast<double>(all);
}

// Which a search does not vary.
const char* reduced_text(const Strategy& strategy) {
  return strategy.zero.overlap_comm ? "during the passes" : "after the passes";
}
const char* kept_text(const Strategy& strategy) {
  return strategy.offload.activations ? "host" : "device";
}

// "recompute none instead of full, ZeRO 1 instead of 0".
std::string differences(const Plan& best, const Plan& chosen) {
  const Strategy &a = best.strategy.strategy, &b = chosen.strategy.strategy;
  std::string text;
  const auto add = [&text](const std::string& what, const std::string& mine,
                           const std::string& theirs) {
    if (mine == theirs) return;
    text += (text.empty() ? "" : ", ") + what + mine + " instead of " + theirs;
  };
  add("", mesh_text(a, best.result.ranks), mesh_text(b, chosen.result.ranks));
  add("schedule ", schedule_text(a.pipeline), schedule_text(b.pipeline));
  add("recompute ", recomputed_text(best), recomputed_text(chosen));
  add("ZeRO ", state_text(a), state_text(b));
  add("micro-batch ", std::to_string(a.micro_batch), std::to_string(b.micro_batch));
  add("gradients reduced ", reduced_text(a), reduced_text(b));
  add("kept activations on the ", kept_text(a), kept_text(b));
  return text.empty() ? "the same choices" : text;
}

std::string memory_left(const RunResult& run) {
  if (run.device_capacity == 0) return "";
  const std::int64_t left = run.device_capacity - bytes_that_must_fit(run);
  if (left < 0) return "needs " + format_bytes(-left) + " more than the device has";
  return "leaves " + format_bytes(left) + " of the device free";
}

std::string whole_percent(double share) { return std::to_string(std::lround(100 * share)) + " %"; }

}  // namespace

PlanField plan_field(PlanRequest request) {
  request.top = 1;
  request.explains = false;
  Plans plans = find_plans(request);
  if (plans.best.empty()) {
    throw Error(ErrorCode::infeasible, request.scenario.name + ": no plan fits");
  }
  return {std::move(plans.best.front()),
          Bounded(request.scenario, plan_space(request)).sampled(request)};
}

Standing standing_of(const PlanField& field, const Scenario& scenario,
                     const ImportedStrategy& strategy) {
  const sim::ClusterSpec cluster = scenario_cluster(scenario);
  const std::int64_t budget = memory_budget(scenario, cluster);
  Standing out;
  out.chosen = unlimited_plan(scenario, cluster, budget, strategy);
  const RunResult& run = out.chosen.result;
  const bool is_larger = budget > 0 && bytes_that_must_fit(run) > budget;
  out.fits = is_larger && !run.software_held.is_known() ? Fits::no : fits(run);
  out.of_best = run.step_time.median / field.best.result.step_time.median;
  const Strategy& own = strategy.strategy;
  const double least =
      Bounded(scenario, space_of(own, scenario.run.ranks, scenario.model.layers)).seconds();
  out.share_faster =
      share_below(least, field.others, [](const BoundedPlan&) { return true; }).value_or(0);
  out.share_faster_alike = share_below(least, field.others, [&own](const BoundedPlan& each) {
    return each.recompute == own.recompute &&
           each.sequence_parallel == own.tensor.sequence_parallel;
  });
  return out;
}

std::string standing_text(const PlanField& field, const Standing& standing) {
  std::string text = "the best has " + differences(field.best, standing.chosen) + "; it is " +
                     why_better(field.best, standing.chosen);
  const auto ratio = sim::step_ratio(field.best.result, standing.chosen.result);
  if (ratio && !ratio->is_decided()) text += "; not told apart: " + sim::readable(*ratio);
  const std::string left = memory_left(standing.chosen.result);
  if (!left.empty()) text += "; the chosen one " + left;
  if (standing.share_faster_alike) {
    text += "; of the plans that recompute and cut sequences alike " +
            whole_percent(*standing.share_faster_alike) + " are faster";
  }
  return text;
}

}  // namespace zl
