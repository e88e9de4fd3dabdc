// The planner: its answer beside that of trying everything.
#include "scenarios/planner/plan.h"

#include <gtest/gtest.h>
#include <sched.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "core/base/error.h"
#include "core/threads/all_cores.h"
#include "scenarios/files/clusters.h"
#include "scenarios/files/strategy_json.h"
#include "scenarios/planner/plan_tables.h"
#include "scenarios/planner/recorded_plan.h"
#include "scenarios/planner/why.h"
#include "scenarios/run/judge.h"
#include "scenarios/run/resolve_recompute.h"
#include "tests/planner/requests.h"

namespace zl {
namespace {

using test::small_request;

// Records and prices every combination; the fastest that fits.
double fastest_by_force(const PlanRequest& request) {
  const sim::ClusterSpec cluster = scenario_cluster(request.scenario);
  const sim::PlanSpace space = plan_space(request);
  sim::PlanRules rules(request.scenario.model, space, request.scenario.run.sequence_length);
  const DeviceProperties device = simulated_device(request.scenario, cluster);
  std::vector<Strategy> strategies;
  for (std::int64_t i = 0; i < space.size(); ++i) {
    const sim::PlanPoint point = space.at(i);
    const auto division = space.division(point);
    if (!sim::is_canonical(space, point) || !division || !rules.allows(point, *division)) continue;
    strategies.push_back(space.strategy(point));
  }
  std::vector<double> times(strategies.size(), INFINITY);
  on_all_cores(strategies.size(), [&](std::size_t i) {
    const Strategy strategy = resolve_recompute(request.scenario, strategies[i], device);
    const Verdict verdict =
        judge(request.scenario, strategy, device, program_options(request.scenario));
    if (!verdict.fits()) return;
    times[i] = price_run(request.scenario, *verdict.recording, cluster).step_time.median;
  });
  return *std::ranges::min_element(times);
}

struct SmallSpace {
  std::int64_t ranks, layers, global_batch;
  std::int64_t memory;  // GiB
  const char* limits;
};

constexpr SmallSpace kSmallSpaces[] = {
    {4, 4, 8, 4, "pipeline<=2,micro_batch=1,replicate=1,offload=none,recompute=none,schedule=1f1b"},
    {4, 4, 8, 4, "zero=3,micro_batch<=2,pipeline=1,recompute=full,replicate=1"},
    {8, 8, 32, 8, "zero=1,replicate=1,offload=none,recompute=none,schedule=1f1b,tensor=1"},
    {8, 8, 32, 8, "zero=1,replicate=1,offload=none,recompute=full,schedule=interleaved,tensor<=2"},
    {8, 8, 32, 3,
     "zero=1,replicate=1,offload=none,schedule=zb-h1,pipeline>=2,tensor=1,micro_batch<=2"},
    {8, 8, 32, 2, "zero<=1,replicate=1,offload=none,recompute=full,tensor<=2,micro_batch=1"},
    {8, 8, 16, 16, "pipeline=1,offload=none,recompute=none,micro_batch<=2,tensor=1"},
    {8, 8, 16, 16, "pipeline=1,recompute=none,micro_batch=1,tensor<=2,replicate=1"},
    {8, 12, 24, 6, "zero=0,recompute=none,offload=none,tensor=1,micro_batch<=2"},
    {8, 12, 24, 6, "zero=1,recompute=none,offload=none,tensor=1,schedule=zb-v,micro_batch<=2"},
    {8, 12, 24, 6,
     "zero=1,recompute=none,offload=none,tensor=2,schedule=dualpipe-v,micro_batch<=2"},
    {8, 12, 24, 4, "zero=1,recompute=full,offload=none,tensor=2,schedule=gpipe,micro_batch<=2"},
    {8, 12, 24, 4,
     "zero=1,offload=none,tensor=4,sequence_parallel=true,schedule=1f1b,micro_batch<=2"},
    {8, 12, 96, 4, "zero=2,offload=none,recompute=none,tensor=1,pipeline=1,micro_batch<=2"},
    {8, 12, 96, 4, "zero>=1,offload=none,recompute=full,tensor=2,pipeline=1,micro_batch<=4"},
    {16, 8, 64, 4, "zero=1,offload=none,recompute=none,schedule=1f1b,micro_batch=1"},
    {16, 8, 64, 4,
     "zero=1,offload=none,recompute=none,schedule=interleaved-zb,tensor=2,micro_batch<=2"},
    {16, 8, 64, 4,
     "zero=1,offload=none,recompute=none,pipeline=4,tensor=1,replicate=1,micro_batch<=2"},
    {16, 8, 64, 2, "zero=1,offload=none,recompute=full,pipeline=2,replicate=1,micro_batch<=2"},
    {2, 4, 8, 3, "recompute=none,micro_batch<=2"},
    // Stages that are equal where embedding and head count as a layer each.
    {8, 10, 32, 4, "zero<=1,pipeline=4,recompute=none,offload=none,micro_batch<=2"},
    {8, 14, 32, 4, "zero=1,pipeline=4,recompute=full,schedule=interleaved,micro_batch=1"},
    {8, 12, 24, 4,
     "zero<=1,recompute=auto,offload=none,tensor=1,pipeline=4,schedule=1f1b,micro_batch<=4"},
    {8, 16, 48, 3,
     "zero=1,offload=none,tensor=1,pipeline>=2,schedule=1f1b,virtual_stages=1,micro_batch<=2"},
    {8, 16, 32, 3,
     "zero=1,recompute=auto,offload=none,tensor=1,pipeline=4,virtual_stages=2,micro_batch<=2"},
};

TEST(Plan, FindsWhatTryingEverythingFinds) {
  for (const SmallSpace& small : kSmallSpaces) {
    PlanRequest request = small_request(small.ranks, small.layers, small.global_batch);
    request.limits = parse_limits(small.limits);
    request.scenario.run.device_memory = small.memory << 30;
    const Plans plans = find_plans(request);
    double best = INFINITY;
    for (const Plan& plan : plans.best) best = std::min(best, plan.result.step_time.median);
    EXPECT_EQ(best, fastest_by_force(request)) << small.limits;
  }
}

// As Megatron-LM can be told to cut 126 layers into 16 stages, and BLOOM's 70 into 12.
TEST(Plan, StagesThatAreEqualByUnitsAreFoundForMegatron) {
  PlanRequest request = small_request(8, 10, 32);
  request.limits = parse_limits("pipeline=4,schedule=1f1b");
  request.scenario.run.software = "megatron-core";
  const Plans plans = find_plans(request);
  ASSERT_FALSE(plans.best.empty());
  EXPECT_EQ(plans.best.front().layers, (std::vector<std::int64_t>{2, 3, 3, 2}));
  EXPECT_EQ(plans.best.front().strategy.strategy.pipeline.split, LayerSplit::units);
  request.scenario.model.layers = 11;
  EXPECT_THROW(find_plans(request), Error) << "neither 11 nor 13 are four times anything";
}

TEST(Plan, Stage3MayHaveItsOptimizerAloneOnTheHost) {
  PlanRequest request = small_request(8, 8, 32);
  request.limits = parse_limits("zero=3,offload=optimizer,pipeline=1");
  const Plans plans = find_plans(request);
  ASSERT_FALSE(plans.best.empty());
  const OffloadConfig& offload = plans.best.front().strategy.strategy.offload;
  EXPECT_EQ(offload.optimizer, Tier::cpu);
  EXPECT_EQ(offload.parameters, Tier::device);
}

// Which has no strategy among the scenario's.
TEST(Plan, TheOptimizerAloneOnTheHostIsRecordedAmongAllOthers) {
  PlanRequest request = small_request(2, 4, 8);
  request.limits = parse_limits("tensor=1,pipeline=1,micro_batch=1,recompute=none");
  request.scenario.strategies.front().warnings = {"of every plan"};
  request.top = 100;
  const Plans plans = find_plans(request);
  bool has_optimizer_alone = false;
  for (const Plan& plan : plans.best) {
    const OffloadConfig& offload = plan.strategy.strategy.offload;
    has_optimizer_alone |= plan.strategy.strategy.zero.stage == 3 &&
                           offload.optimizer == Tier::cpu && offload.parameters == Tier::device;
    EXPECT_TRUE(plan.strategy.effects.empty()) << "no file says what a plan does";
    EXPECT_EQ(plan.strategy.warnings, (std::vector<std::string>{"of every plan"}));
  }
  EXPECT_TRUE(has_optimizer_alone);
}

// All that is shown of plans.
std::string text_of(const Plans& plans) {
  std::string text;
  for (const std::vector<Plan>* list : {&plans.best, &plans.frontier}) {
    for (const Plan& plan : *list) {
      text += plan.strategy.strategy.name + " " + std::to_string(plan.result.step_time.median) +
              " " + std::to_string(plan.result.peak_device.total()) + " " +
              std::to_string(plan.closed_form.time) + " " + plan.why + "\n";
    }
  }
  return text + std::to_string(plans.counts.judged) + " " + std::to_string(plans.counts.profiles) +
         " " + std::to_string(plans.counts.recorded);
}

// The first stages hold the most micro-batches: as few blocks of each as make it fit, which is
// faster than one number for all.
TEST(Plan, RecomputesOfEachStageAsFewBlocksAsItNeeds) {
  PlanRequest request = small_request(8, 16, 32);
  request.limits = parse_limits(
      "recompute=auto,pipeline=4,zero=1,offload=none,schedule=1f1b,tensor=1,micro_batch=2,"
      "virtual_stages=1");
  const auto within = [&](std::int64_t memory) {
    request.scenario.run.device_memory = memory;
    return find_plans(request);
  };
  std::int64_t memory = std::int64_t{16} << 30;
  const std::int64_t none_needed = within(memory).best.front().result.peak_device.total();
  memory = none_needed * 3 / 4;
  const Plans by_stage = within(memory);
  ASSERT_FALSE(by_stage.best.empty());
  const Plan& best = by_stage.best.front();
  const std::vector<std::int64_t> blocks = recomputed_layers(best);
  EXPECT_GT(blocks.front(), blocks.back());
  EXPECT_EQ(best.strategy.strategy.recompute.stage_blocks, blocks);
  ImportedStrategy one_number = best.strategy;
  one_number.strategy.recompute.stage_blocks.clear();
  one_number.strategy.recompute.blocks = blocks.front();
  const sim::ClusterSpec cluster = scenario_cluster(request.scenario);
  const auto slower = recorded_plan(request.scenario, cluster,
                                    memory_budget(request.scenario, cluster), one_number);
  ASSERT_TRUE(slower);
  EXPECT_LT(best.result.step_time.median, slower->result.step_time.median);
  EXPECT_NE(why_better(best, *slower).find(" of 16 layers recomputed, not "), std::string::npos);
  // Software that has one number for all stages is not offered others.
  request.scenario.run.software = "megatron-core";
  EXPECT_FALSE(plan_space(request).recomputes_by_stage);
}

TEST(Plan, IsTheSameOnAnyNumberOfCores) {
  const PlanRequest request = small_request(8, 8, 32);
  const std::string all = text_of(find_plans(request));
  cpu_set_t cores, one;
  ASSERT_EQ(sched_getaffinity(0, sizeof cores, &cores), 0);
  CPU_ZERO(&one);
  for (int core = 0; core < CPU_SETSIZE && CPU_COUNT(&one) == 0; ++core) {
    if (CPU_ISSET(core, &cores)) CPU_SET(core, &one);
  }
  ASSERT_EQ(sched_setaffinity(0, sizeof one, &one), 0);
  const std::string alone = text_of(find_plans(request));
  ASSERT_EQ(sched_setaffinity(0, sizeof cores, &cores), 0);
  EXPECT_EQ(all, alone);
}

TEST(Plan, SaysWhenItHadItsFirstAnswer) {
  const Plans plans = find_plans(small_request(8, 8, 32));
  EXPECT_GT(plans.first_seconds, 0);
  EXPECT_GT(plans.seconds, plans.first_seconds);
  EXPECT_NE(counts_line(plans).find("; a first answer after "), std::string::npos)
      << counts_line(plans);
}

TEST(Plan, SaysWhatIsMissingWhereNothingFits) {
  PlanRequest request = small_request(2, 4, 4);
  request.scenario.run.device_memory = std::int64_t{256} << 20;
  const Plans plans = find_plans(request);
  EXPECT_TRUE(plans.best.empty());
  EXPECT_NE(plans.shortage.find("largest: "), std::string::npos) << plans.shortage;
  EXPECT_NE(plans.shortage.find("; a plan would fit "), std::string::npos) << plans.shortage;
  EXPECT_EQ(plans.shortage.find("--constrain"), std::string::npos) << plans.shortage;
}

TEST(Plan, SaysThatTheLimitsLeaveNothingThatFits) {
  PlanRequest request = small_request(8, 8, 32);
  request.scenario.run.device_memory = std::int64_t{3} << 30;
  request.limits = parse_limits("tensor=1,pipeline=1,zero=0,recompute=none");
  const Plans plans = find_plans(request);
  ASSERT_TRUE(plans.best.empty());
  EXPECT_NE(plans.shortage.find("; a plan would fit without --constrain"), std::string::npos)
      << plans.shortage;
}

// A batch that no mesh divides, and more devices than a model and its batch can use.
TEST(Plan, RefusesABatchThatNoMeshDivides) {
  struct Divided {
    std::int64_t ranks, global_batch;
    const char* limits;
  };
  for (const Divided& each : {Divided{8, 3, "tensor=1,pipeline=1"}, Divided{1024, 1, ""}}) {
    PlanRequest request = small_request(each.ranks, 4, each.global_batch);
    if (*each.limits != 0) request.limits = parse_limits(each.limits);
    const std::string expected = "--global-batch: " + std::to_string(each.global_batch) +
                                 " sequences cannot be divided over any mesh of " +
                                 std::to_string(each.ranks) + " ranks";
    try {
      find_plans(request);
      ADD_FAILURE() << expected;
    } catch (const Error& error) {
      EXPECT_EQ(std::string(error.what()).find(expected), 0u) << error.what();
    }
  }
}

// What a request without any plan is refused with.
std::string refusal(std::int64_t ranks, std::int64_t global_batch, const char* limits,
                    const std::string& software = "zerolab") {
  PlanRequest request = small_request(ranks, 4, global_batch);
  request.scenario.run.software = software;
  if (*limits != 0) request.limits = parse_limits(limits);
  try {
    find_plans(request);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::invalid);
    return error.what();
  }
  return "none";
}

TEST(Plan, NamesWhatStandsInTheWay) {
  EXPECT_NE(refusal(8, 7, "tensor=1,pipeline=1").find("the nearest that can are 8"),
            std::string::npos)
      << refusal(8, 7, "tensor=1,pipeline=1");
  EXPECT_NE(refusal(1024, 1, "").find("keep no more than 32 GPUs busy"), std::string::npos)
      << refusal(1024, 1, "");
  EXPECT_EQ(refusal(8, 64, "data=3").find("--constrain: leaves no mesh of 8 ranks"), 0U);
  EXPECT_EQ(refusal(8, 64, "tensor=2", "deepspeed").find("--software deepspeed: "), 0U);
  EXPECT_EQ(refusal(8, 64, "tensor=16"),
            "--constrain tensor=16: leaves nothing; there is 1, 2, 4, 8");
}

TEST(PlanLimits, RefuseWhatTheyDoNotKnow) {
  for (const char* text :
       {"tensors=2", "tensor<2", "tensor=two", "schedule=1f2b", "recompute<=1"}) {
    EXPECT_THROW(parse_limits(text), Error) << text;
  }
  sim::PlanSpace space;
  EXPECT_THROW(apply_limits(parse_limits("tensor>=16"), space), Error);
}

}  // namespace
}  // namespace zl
