// What a search keeps of what it judged, and which of the best it names first.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "scenarios/planner/judged_plan.h"
#include "scenarios/planner/plan_answer.h"

namespace zl {
namespace {

JudgedPlan judged(std::int64_t time, bool is_exact) {
  return {.candidate = {}, .form = {.memory = 1, .time = time, .is_exact = is_exact}};
}

TEST(KeptPlans, PlansInDoubtCrowdNoneOutThatFit) {
  std::vector<JudgedPlan> kept;
  for (int i = 0; i < 50; ++i) kept.push_back(judged(100 + i, false));
  kept.push_back(judged(1000, true));
  keep_best(PlanGoal::throughput, 10, kept);
  ASSERT_EQ(kept.size(), 11u);
  EXPECT_EQ(kept.front().form.time, 100);
  EXPECT_EQ(kept[9].form.time, 109);
  EXPECT_EQ(kept.back().form.time, 1000) << "slower than many that may not fit";
}

TEST(KeptPlans, TheBestComeFirstAndNoMoreThanAsked) {
  std::vector<JudgedPlan> kept;
  for (int i = 0; i < 50; ++i) kept.push_back(judged(100 - i, true));
  keep_best(PlanGoal::throughput, 10, kept);
  ASSERT_EQ(kept.size(), 10u);
  EXPECT_EQ(kept.front().form.time, 51);
  EXPECT_EQ(kept.back().form.time, 60);
}

// Of a device of 100 bytes.
Plan plan_of(double seconds, int stage, std::int64_t low, std::int64_t high) {
  Plan plan;
  plan.strategy.strategy.zero.stage = stage;
  RunResult& result = plan.result;
  result.predicted = true;
  result.outcome = Outcome::ok;
  result.step_time.median = seconds;
  result.step_time_low = seconds / 2;
  result.step_time_high = 2 * seconds;
  result.device_capacity = 100;
  result.software_held = {.in_use = low, .device = low, .low = low, .high = high};
  return plan;
}

TEST(PlanAnswer, WhatFitsForCertainComesBeforeWhatMay) {
  Plans plans;
  plans.best = {plan_of(1.000, 0, 90, 110), plan_of(1.001, 1, 90, 110), plan_of(1.002, 3, 60, 80),
                plan_of(1.003, 2, 60, 80)};
  finish_plans(PlanGoal::throughput, 3, plans);
  ASSERT_EQ(plans.best.size(), 3u);
  ASSERT_TRUE(plans.best[1].equals_best);
  EXPECT_EQ(plans.best[0].strategy.strategy.zero.stage, 2) << "the simplest of what fits";
  EXPECT_EQ(plans.best[1].strategy.strategy.zero.stage, 3);
  EXPECT_EQ(plans.best[2].strategy.strategy.zero.stage, 0) << "may fit";
  EXPECT_EQ(plans.best[0].why.find("surely fits"), std::string::npos);
  EXPECT_NE(plans.best[1].why.find("surely fits"), std::string::npos);
}

TEST(PlanAnswer, AmongPlansThatMayFitTheSimplestIsNamedFirst) {
  Plans plans;
  plans.best = {plan_of(1.000, 3, 90, 110), plan_of(1.001, 1, 90, 110)};
  finish_plans(PlanGoal::throughput, 3, plans);
  EXPECT_EQ(plans.best[0].strategy.strategy.zero.stage, 1);
}

}  // namespace
}  // namespace zl
