// The planner: a configuration judged by its closed form (aim 2 us, at most 50 us), and GPT-3 175B
// on 1,024 GPUs, the whole space (under 10 s on 2 cores).
#include <benchmark/benchmark.h>

#include <utility>
#include <vector>

#include "scenarios/files/clusters.h"
#include "scenarios/planner/plan.h"
#include "scenarios/planner/plan_candidates.h"

namespace {

using namespace zl;

PlanRequest gpt3_request() {
  ScenarioOverrides overrides;
  overrides.cluster = "1024xa100-80";
  overrides.sequence_length = 2048;
  PlanRequest request;
  request.scenario = plan_scenario("gpt3-175b", overrides);
  request.global_batch = 1536;
  return request;
}

// Pipelines of `ranks` under 1F1B, every data-parallel way of a batch.
void judge_pipelines(benchmark::State& state) {
  PlanRequest request = gpt3_request();
  request.limits = parse_limits(
      "tensor=8,zero=1,schedule=1f1b,virtual_stages=1,replicate=1,"
      "recompute=full,pipeline=" +
      std::to_string(state.range(0)));
  const sim::ClusterSpec cluster = scenario_cluster(request.scenario);
  const sim::PlanSpace space = plan_space(request);
  PlanProfiles profiles(request.scenario, cluster, space);
  sim::PlanRules rules(request.scenario.model, space, request.scenario.run.sequence_length);
  std::vector<std::pair<sim::PlanPoint, sim::PlanSpace::Division>> points;
  for (std::int64_t i = 0; i < space.size(); ++i) {
    const sim::PlanPoint point = space.at(i);
    const auto division = space.division(point);
    if (!division || !sim::is_canonical(space, point) || !rules.allows(point, *division)) continue;
    points.emplace_back(point, *division);
    profiles.prepare(std::vector<DividedPoint>{{point, *division}});
  }
  std::size_t next = 0;
  for (auto _ : state) {
    const auto& [point, division] = points[next++ % points.size()];
    benchmark::DoNotOptimize(profiles.closed_form(point, division));
  }
  state.SetItemsProcessed(state.iterations());
}
BENCHMARK(judge_pipelines)->Arg(1)->Arg(4)->Arg(8)->Arg(16)->Unit(benchmark::kMicrosecond);

// Bounds of the whole space, which decide what is judged at all.
void bound_gpt3(benchmark::State& state) {
  const PlanRequest request = gpt3_request();
  const sim::ClusterSpec cluster = scenario_cluster(request.scenario);
  const sim::PlanSpace space = plan_space(request);
  PlanProfiles profiles(request.scenario, cluster, space);
  PlanBounder bounder(request.scenario, cluster, space, profiles);
  const PlanMemory memory(request.scenario, space, 0);
  std::vector<PlanCandidate> all = plan_candidates(request, space, 0, memory, bounder).all;
  for (auto _ : state) bounder.bound(all);
  state.SetItemsProcessed(state.iterations() * static_cast<std::int64_t>(all.size()));
}
BENCHMARK(bound_gpt3)->Unit(benchmark::kMillisecond)->UseRealTime();

void plan_gpt3(benchmark::State& state) {
  const PlanRequest request = gpt3_request();
  for (auto _ : state) {
    const Plans plans = find_plans(request);
    state.counters["combinations"] = static_cast<double>(plans.counts.combinations);
    state.counters["runnable"] = static_cast<double>(plans.counts.runnable);
    state.counters["judged"] = static_cast<double>(plans.counts.judged);
  }
}
BENCHMARK(plan_gpt3)->Unit(benchmark::kSecond)->Iterations(1);

}  // namespace
