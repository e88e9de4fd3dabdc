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

std::vector<PlanCandidate> spread(std::vector<PlanCandidate> all) {
  if (all.size() <= kSampled) return all;
  std::vector<PlanCandidate> some;
  for (std::size_t i = 0; i < kSampled; ++i) some.push_back(all[i * all.size() / kSampled]);
  return some;
}

std::vector<sim::ClosedForm> closed_forms(const std::vector<PlanCandidate>& some,
                                          PlanProfiles& profiles) {
  std::vector<DividedPoint> points;
  for (const PlanCandidate& each : some) points.emplace_back(each.point, each.division);
  profiles.prepare(points);
  std::vector<sim::ClosedForm> forms(some.size());
  on_all_cores(some.size(), [&](std::size_t i) {
    forms[i] = *profiles.closed_form(some[i].point, some[i].division, some[i].blocks);
  });
  return forms;
}

std::vector<double> sampled_seconds(const PlanRequest& request) {
  const sim::ClusterSpec cluster = scenario_cluster(request.scenario);
  const std::int64_t budget = memory_budget(request.scenario, cluster);
  const sim::PlanSpace space = plan_space(request);
  PlanProfiles profiles(request.scenario, cluster, space);
  PlanBounder bounder(request.scenario, cluster, space, profiles);
  const PlanMemory memory(request.scenario, space, budget);
  const PlanCandidates candidates = plan_candidates(request, space, budget, memory, bounder);
  std::vector<double> seconds;
  const std::vector<PlanCandidate> some = fitting(spread(candidates.all), memory);
  const std::vector<sim::ClosedForm> forms = closed_forms(some, profiles);
  for (std::size_t i = 0; i < some.size(); ++i) {
    if (!some[i].by_software && !fits(forms[i], budget)) continue;
    seconds.push_back(static_cast<double>(forms[i].time) * 1e-12);
  }
  return seconds;
}

}  // namespace

PlanField plan_field(PlanRequest request) {
  request.top = 1;
  request.explains = false;
  Plans plans = find_plans(request);
  if (plans.best.empty()) {
    throw Error(ErrorCode::infeasible, request.scenario.name + ": no plan fits");
  }
  return {std::move(plans.best.front()), sampled_seconds(request)};
}

Standing standing_of(const PlanField& field, const Scenario& scenario,
                     const ImportedStrategy& strategy) {
  const Replay run = replay(scenario, strategy);
  const sim::ClusterSpec cluster = scenario_cluster(scenario);
  const std::int64_t budget = memory_budget(scenario, cluster);
  Standing out;
  out.step_seconds = price_run(scenario, run.recording, cluster).step_time.median;
  out.fits = budget == 0 || run.needed() <= budget;
  out.of_best = out.step_seconds / field.best.result.step_time.median;
  const auto faster = std::ranges::count_if(
      field.others, [&out](double seconds) { return seconds < out.step_seconds; });
  if (!field.others.empty()) {
    out.share_faster = static_cast<double>(faster) / static_cast<double>(field.others.size());
  }
  return out;
}

}  // namespace zl
