// A search judges memory as runs do: by what the software itself would hold, where that is known.
#include "scenarios/planner/plan_memory.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "scenarios/files/clusters.h"
#include "scenarios/planner/plan_candidates.h"
#include "scenarios/run/judge.h"
#include "tests/planner/requests.h"

namespace zl {
namespace {

struct Counts {
  int known = 0, fitting = 0, others = 0;
};

Counts compare_with_the_judge(const std::string& software, std::int64_t budget) {
  PlanRequest request = test::small_request(8, 12, 16);
  request.scenario.run.software = software;
  const sim::PlanSpace space = plan_space(request);
  const PlanMemory memory(request.scenario, space, budget);
  DeviceProperties device = simulated_device(request.scenario, scenario_cluster(request.scenario));
  device.memory = budget;
  sim::PlanRules rules(request.scenario.model, space, request.scenario.run.sequence_length);
  Counts counts;
  for (std::int64_t index = 0; index < space.size(); index += 7) {
    const sim::PlanPoint point = space.at(index);
    const auto division = space.division(point);
    if (!sim::is_canonical(space, point) || !division || !rules.allows(point, *division)) continue;
    if (space.recompute[point.recompute].mode == RecomputeMode::automatic) continue;
    const Strategy strategy = space.strategy(point);
    const DeviceVerdict verdict = judge_device(request.scenario, strategy, device);
    EXPECT_EQ(memory.knows(point), verdict.held().is_known());
    if (!memory.knows(point)) {
      ++counts.others;
      continue;
    }
    ++counts.known;
    const auto held = memory.fitting(point);
    EXPECT_EQ(held.has_value(), verdict.refusal.empty());
    const std::int64_t least = memory.least(point, *division);
    EXPECT_LE(least, verdict.held().in_use);
    if (!held) continue;
    ++counts.fitting;
    EXPECT_EQ(held->in_use, verdict.held().in_use);
    EXPECT_TRUE(memory.could_fit(least)) << "a bound leaves out none that fits";
  }
  return counts;
}

TEST(PlanMemory, IsTheJudges) {
  const Counts megatron = compare_with_the_judge("megatron-core", std::int64_t{6} << 30);
  EXPECT_GT(megatron.known, 100);
  EXPECT_GT(megatron.fitting, 0);
  EXPECT_LT(megatron.fitting, megatron.known);
  const Counts torch = compare_with_the_judge("torch-fsdp2-compile", std::int64_t{6} << 30);
  EXPECT_GT(torch.known, 10);
  EXPECT_GT(torch.others, 10) << "tensor groups and pipelines";
  EXPECT_EQ(compare_with_the_judge("zerolab", std::int64_t{6} << 30).known, 0);
}

// The fewest blocks that fit, or another plan.
TEST(PlanMemory, AutomaticRecomputationTakesTheFewestBlocks) {
  PlanRequest request = test::small_request(8, 12, 64);
  request.scenario.run.software = "megatron-core";
  const sim::PlanSpace space = plan_space(request);
  int some = 0;
  for (std::int64_t index = 0; index < space.size() && some < 20; ++index) {
    const sim::PlanPoint point = space.at(index);
    if (space.recompute[point.recompute].mode != RecomputeMode::automatic) continue;
    if (!sim::is_canonical(space, point) || !space.division(point)) continue;
    const PlanMemory unlimited(request.scenario, space, 0);
    if (!unlimited.knows(point)) continue;
    const std::int64_t stages = space.pipeline[point.pipeline] * space.chunks[point.chunks];
    const auto device = [&](std::int64_t blocks) {
      const Strategy strategy = space.strategy(point, std::vector(stages, blocks));
      return judge_device(request.scenario, strategy, {}).held().low;
    };
    const std::int64_t layers = request.scenario.model.layers / stages;
    if (layers < 3 || device(1) >= device(0)) continue;
    const PlanMemory memory(request.scenario, space, device(1));
    const auto held = memory.fitting(point);
    ASSERT_TRUE(held) << index;
    EXPECT_EQ(held->blocks, std::vector(stages, std::int64_t{1}));
    EXPECT_FALSE(unlimited.fitting(point)) << "without a block it is another plan";
    ++some;
  }
  EXPECT_GT(some, 5);
}

}  // namespace
}  // namespace zl
