// The way from a configuration to a better one, and what training takes of energy.
#include "scenarios/planner/plan_walk.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>

#include "core/base/error.h"
#include "scenarios/launch/import_any.h"
#include "scenarios/planner/plan.h"
#include "tests/temp_folder.h"

namespace zl {
namespace {

PlanRequest walk_request() {
  ScenarioOverrides overrides;
  overrides.cluster = "4xh100";
  overrides.sequence_length = 1024;
  overrides.software = "zerolab";
  PlanRequest request;
  request.scenario = plan_scenario("gpt2-774m", overrides);
  request.scenario.model.layers = 4;
  request.global_batch = 16;
  request.top = 1;
  request.limits = parse_limits("micro_batch<=4,offload=none");
  return request;
}

ImportedStrategy poor_start() {
  ImportedStrategy start;
  start.strategy.name = "today";
  start.strategy.precision.compute_dtype = DType::bf16;
  start.strategy.tensor.ranks = 4;
  start.strategy.recompute.mode = RecomputeMode::full;
  return start;
}

double seconds_of(const WalkStep& step) { return step.plan.result.step_time.median; }

TEST(Walk, EveryChangeIsFasterAndTheEndIsNearTheBest) {
  const PlanRequest request = walk_request();
  const std::vector<WalkStep> steps = walk_from(request, poor_start());
  const Plans plans = find_plans(request);
  const double best = plans.best.front().result.step_time.median;
  ASSERT_GT(steps.size(), 1U) << seconds_of(steps[0]) << " s, the best " << best;
  for (std::size_t i = 1; i < steps.size(); ++i) {
    EXPECT_LT(seconds_of(steps[i]), seconds_of(steps[i - 1])) << steps[i].change;
    EXPECT_NE(steps[i].change.find(" -> "), std::string::npos) << steps[i].change;
    EXPECT_TRUE(steps[i].fits);
  }
  EXPECT_LT(seconds_of(steps.back()), 1.1 * best);
  const Table table = walk_table(steps, &plans.best.front(), {});
  EXPECT_EQ(table.rows.size(), steps.size() + 1);
  const auto fits_in = std::ranges::find(table.columns, "fits", &Column::name);
  ASSERT_NE(fits_in, table.columns.end());
  EXPECT_EQ(table.rows[1][fits_in - table.columns.begin()], Cell(std::string("yes")));
  const Json json = walk_json(steps, {});
  ASSERT_EQ(json.size(), steps.size());
  EXPECT_EQ(json[1]["fits"], "yes") << "as of every plan";
}

TEST(Walk, IsHeldBesidePlansOfItsTypes) {
  ImportedStrategy start = poor_start();
  start.strategy.precision.compute_dtype = DType::f32;
  start.strategy.optimizer.lr = 0.5;
  const Plans plans = find_plans(request_like(walk_request(), start));
  ASSERT_FALSE(plans.best.empty());
  for (const Plan& plan : plans.best) {
    EXPECT_EQ(plan.strategy.strategy.precision.compute_dtype, DType::f32);
    EXPECT_EQ(plan.strategy.strategy.optimizer.lr, 0.5);
  }
  EXPECT_NE(find_plans(walk_request()).best.front().strategy.strategy.precision.compute_dtype,
            DType::f32);
}

TEST(Walk, BeginsWithWhatDoesNotFit) {
  PlanRequest request = walk_request();
  request.scenario.run.device_memory = std::int64_t{3} << 30;
  ImportedStrategy start = poor_start();
  start.strategy.tensor.ranks = 1;
  start.strategy.recompute = {};
  start.strategy.micro_batch = 4;
  const std::vector<WalkStep> steps = walk_from(request, start);
  ASSERT_GT(steps.size(), 1U);
  EXPECT_FALSE(steps[0].fits);
  EXPECT_TRUE(steps[1].fits);
}

TEST(Walk, RefusesAMeshThatDoesNotDivideTheRanks) {
  ImportedStrategy start = poor_start();
  start.strategy.tensor.ranks = 3;
  EXPECT_THROW(walk_from(walk_request(), start), Error);
}

TEST(ImportAny, TellsFilesByWhatTheyAre) {
  const test::TempFolder folder;
  const auto write = [&folder](const std::string& name, const std::string& text) {
    std::ofstream(folder / name) << text;
    return (folder / name).string();
  };
  const PlanRequest request = walk_request();
  const ImportContext context{.ranks = 4, .model = &request.scenario.model};
  EXPECT_EQ(import_any("zero-3", context).strategy.zero.stage, 3);
  const std::string deepspeed = write("ds.json", R"({"zero_optimization": {"stage": 2}})");
  EXPECT_EQ(import_any(deepspeed, context).strategy.zero.stage, 2);
  const std::string several =
      write("s.json", R"({"schema": 1, "model": "tiny-gpt2", "strategies": ["zero-1", "zero-2"]})");
  EXPECT_THROW(import_any(several, context), Error);
  EXPECT_THROW(import_any("no-such", context), Error);
}

TEST(Energy, IsGpuHoursAtTheBoardsPower) {
  Plan plan;
  plan.result.ranks = 8;
  plan.result.tokens_per_second = 1e6;
  const Json json = plan_json(plan, {.tokens = 3.6e12, .board_watts = 700});
  EXPECT_DOUBLE_EQ(json["gpu_hours"].get<double>(), 8000);
  EXPECT_DOUBLE_EQ(json["energy_megawatt_hours"].get<double>(), 5.6);
  EXPECT_FALSE(plan_json(plan, {.tokens = 3.6e12}).contains("energy_megawatt_hours"));
}

}  // namespace
}  // namespace zl
