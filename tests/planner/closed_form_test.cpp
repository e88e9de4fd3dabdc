// Closed forms beside the recordings of random plans: bytes, seconds, bounds.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "core/pipeline/stage_blocks.h"
#include "scenarios/files/clusters.h"
#include "scenarios/files/strategy_json.h"
#include "scenarios/planner/plan_candidates.h"
#include "scenarios/planner/plan_profiles.h"
#include "scenarios/run/simulate.h"
#include "simulator/cluster/find_cluster.h"
#include "tests/planner/requests.h"
#include "tests/temp_folder.h"

namespace zl {
namespace {

using test::small_request;

struct Compared {
  double memory = 0, time = 0;         // closed form over recording
  double bound = 0, memory_bound = 0;  // likewise of the closed form
  bool is_exact = false;
  std::string name;
};

// Of automatic recomputation some number of each rank, all and none among them, as a search spreads
// them over its stages.
std::vector<std::int64_t> blocks_of(const PlanRequest& request, const sim::PlanSpace& space,
                                    const sim::PlanPoint& point, std::int64_t index) {
  if (space.recompute[point.recompute].mode != RecomputeMode::automatic) return {};
  const PipelineConfig pipeline = space.strategy(point).pipeline;
  const std::vector<std::int64_t> layers = layers_of_stages(request.scenario.model, pipeline);
  std::vector<std::int64_t> of_ranks = layers_of_ranks(pipeline, layers);
  std::mt19937_64 random(static_cast<std::uint64_t>(index));
  for (std::int64_t& each : of_ranks) {
    each = static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(each + 1));
  }
  return spread_blocks(pipeline, layers, of_ranks);
}

// What a search does with one point, beside its recording without limits.
std::optional<Compared> compare(const PlanRequest& request, const sim::PlanSpace& space,
                                const sim::ClusterSpec& cluster, PlanProfiles& profiles,
                                std::int64_t index, sim::PlanRules& rules) {
  const sim::PlanPoint point = space.at(index);
  const auto division = space.division(point);
  if (!sim::is_canonical(space, point) || !division || !rules.allows(point, *division)) {
    return std::nullopt;
  }
  profiles.prepare(std::vector<DividedPoint>{{point, *division}});
  const std::vector<std::int64_t> blocks = blocks_of(request, space, point, index);
  const sim::ClosedForm form = *profiles.closed_form(point, *division, blocks);
  DeviceProperties device = sim::device_properties(cluster);
  device.memory = device.host_memory = 0;
  const Strategy strategy = space.strategy(point, blocks);
  const Recording recording =
      record_run(request.scenario, strategy, device, program_options(request.scenario));
  const RunResult result = price_run(request.scenario, recording, cluster);
  Compared found;
  found.memory = static_cast<double>(form.memory) / static_cast<double>(result.peak_device.total());
  found.time = static_cast<double>(form.time) * 1e-12 / result.step_time.median;
  found.is_exact = form.is_exact;
  std::vector<PlanCandidate> alone{{point, *division, {}}};
  PlanBounder bounder(request.scenario, cluster, space, profiles);
  bounder.bound(alone, form.memory);
  found.bound =
      static_cast<double>(bounder.time_of(alone[0], form.memory)) / static_cast<double>(form.time);
  found.memory_bound =
      static_cast<double>(alone[0].least.memory) / static_cast<double>(form.memory);
  found.name =
      "zero-" + std::to_string(strategy.zero.stage) + " tp" +
      std::to_string(strategy.tensor.ranks) + (strategy.tensor.sequence_parallel ? "sp" : "") +
      " pp" + std::to_string(strategy.pipeline.ranks) + " x" +
      std::to_string(strategy.pipeline.virtual_stages) + " " + name_of(strategy.pipeline.schedule) +
      " copies " + std::to_string(strategy.zero.replicas) + " micro " +
      std::to_string(strategy.micro_batch) + " of " +
      std::to_string(strategy.gradient_accumulation) + " recompute " +
      recompute_text(strategy.recompute) + (strategy.offload.any() ? " offload" : "");
  return found;
}

std::vector<Compared> compare_random(const PlanRequest& request, std::size_t count, unsigned seed) {
  const sim::ClusterSpec cluster = scenario_cluster(request.scenario);
  const sim::PlanSpace space = plan_space(request);
  PlanProfiles profiles(request.scenario, cluster, space);
  sim::PlanRules rules(request.scenario.model, space, request.scenario.run.sequence_length);
  std::mt19937_64 random(seed);
  std::vector<Compared> all;
  while (all.size() < count) {
    const auto index =
        static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(space.size()));
    if (auto found = compare(request, space, cluster, profiles, index, rules)) {
      all.push_back(std::move(*found));
    }
  }
  return all;
}

// ZL_RANDOM_PLANS: so many in all, each printed with what its closed form says.
std::size_t plans_of_each(std::size_t requests, std::size_t usual) {
  const char* const wanted = std::getenv("ZL_RANDOM_PLANS");
  if (wanted == nullptr) return usual;
  return (static_cast<std::size_t>(std::atoll(wanted)) + requests - 1) / requests;
}

double at_share(const std::vector<double>& sorted, double share) {
  return sorted[static_cast<std::size_t>(share * static_cast<double>(sorted.size() - 1))];
}

// How far times are off at most.
struct Limits {
  double nine_in_ten = 0, worst = 0;
};

void expect_near_recordings(const std::vector<PlanRequest>& requests, Limits limits) {
  const std::size_t count = plans_of_each(requests.size(), 40);
  std::vector<double> errors;
  for (const PlanRequest& request : requests) {
    for (const Compared& each : compare_random(request, count, 7)) {
      EXPECT_EQ(each.memory, 1.0) << each.name;
      EXPECT_TRUE(each.is_exact) << each.name;
      EXPECT_LE(each.bound, 1.01) << each.name;
      EXPECT_LE(each.memory_bound, 1.0) << each.name;
      errors.push_back(std::abs(each.time - 1));
      if (std::getenv("ZL_RANDOM_PLANS") == nullptr) continue;
      std::printf("PLAN %.5f %.5f %d %s\n", each.memory, each.time, each.is_exact ? 1 : 0,
                  each.name.c_str());
    }
  }
  std::ranges::sort(errors);
  std::printf(
      "%zu plans, time off by: median %.2f %%, nine in ten %.2f %%, 99 in 100 %.2f %%, "
      "worst %.2f %%\n",
      errors.size(), 100 * at_share(errors, 0.5), 100 * at_share(errors, 0.9),
      100 * at_share(errors, 0.99), 100 * errors.back());
  EXPECT_LT(at_share(errors, 0.5), 0.001);
  EXPECT_LT(at_share(errors, 0.9), limits.nine_in_ten);
  EXPECT_LT(errors.back(), limits.worst);
}

TEST(ClosedForm, HoldsAndTakesWhatTheRecordingDoes) {
  expect_near_recordings(
      {small_request(8, 8, 48), small_request(8, 12, 48), small_request(16, 16, 64)},
      {.nine_in_ten = 0.006, .worst = 0.03});
}

// Stages that wait leave their cores to others.
TEST(ClosedForm, KnowsRanksThatOutnumberTheCores) {
  const test::TempFolder folder;
  for (const int cores : {2, 5, 8}) {
    const std::string file = (folder / (std::to_string(cores) + ".json")).string();
    std::ofstream(file) << sim::cluster_json(sim::uncalibrated_local(cores));
    PlanRequest request = small_request(8, 8, 48);
    request.scenario.run.software.clear();
    request.scenario.cluster = file;
    expect_near_recordings({request}, {.nine_in_ten = 0.015, .worst = 0.05});
  }
}

// Stages do not wait for each other's gradients, messages not for reductions, or neither for the
// other.
TEST(ClosedForm, KnowsSoftwareThatReducesLastAndItsMessages) {
  const test::TempFolder folder;
  for (const char* communication :
       {R"("reduces_last": true, "message_stream": true, "overlap_loss": 0.1)",
        R"("reduces_last": true, "message_stream": true, "overlap_loss": 1)",
        R"("message_stream": true, "overlap_loss": 0.1)"}) {
    const std::string file = (folder / "software.json").string();
    std::ofstream(file) << R"({"schema": 2, "name": "software", "communication": {)"
                        << communication << R"(}, "step_error": {"unsupported": 0.3}})";
    PlanRequest request = small_request(16, 16, 64);
    request.scenario.run.software = file;
    expect_near_recordings({request}, {.nine_in_ten = 0.015, .worst = 0.05});
  }
}

}  // namespace
}  // namespace zl
