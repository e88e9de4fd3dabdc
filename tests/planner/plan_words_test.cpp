// What is said of plans: why one is better, which of them fit, and what of several questions.
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>

#include "results/fitted.h"
#include "scenarios/planner/answers.h"
#include "scenarios/planner/plan_answer.h"
#include "scenarios/planner/plan_tables.h"
#include "scenarios/planner/robustness.h"
#include "scenarios/planner/why.h"

namespace zl {
namespace {

constexpr std::int64_t kGiB = std::int64_t{1} << 30;

// Of a step of so many seconds, all of it compute.
Plan plan_of(double seconds, std::int64_t bytes) {
  Plan plan;
  RunResult& run = plan.result;
  run.outcome = Outcome::ok;
  run.ranks = 8;
  run.predicted = true;
  run.step_time.median = run.time.compute = seconds;
  run.step_time_low = 0.8 * seconds;
  run.step_time_high = 1.25 * seconds;
  run.tokens_per_second = 1.5e6 / seconds;
  run.peak_device.tag[0] = run.reserved_device = bytes;
  run.device_capacity = 80 * kGiB;
  return plan;
}

std::size_t column_of(const Table& table, const std::string& name) {
  for (std::size_t i = 0; i < table.columns.size(); ++i) {
    if (table.columns[i].name == name) return i;
  }
  throw std::out_of_range(name);
}

const Cell& cell_of(const Table& table, std::size_t row, const std::string& name) {
  return table.rows.at(row).at(column_of(table, name));
}

TEST(WhyBetter, NamesEnoughPartsToExplainTheDifference) {
  Plan fast = plan_of(10, kGiB), slow = plan_of(10.5, kGiB);
  fast.result.time.compute = 9;
  fast.result.time.exposed_communication = 1;
  slow.result.time.compute = 6;
  slow.result.time.bubble = 2.3;
  slow.result.time.exposed_communication = 2.2;
  const std::string why = why_better(fast, slow);
  EXPECT_EQ(why,
            "5.0 % faster: 2.300 s less bubble, 1.200 s less data communication, 3.000 s more "
            "compute");
}

TEST(WhyBetter, NamesAsManyPartsAsItTakes) {
  Plan fast = plan_of(10, kGiB), slow = plan_of(10.1, kGiB);
  fast.result.time = {.compute = 6, .exposed_communication = 2.5, .bubble = 1.2, .optimizer = 0.3};
  slow.result.time = {
      .compute = 6.4, .exposed_communication = 2.95, .bubble = 0.2, .optimizer = 0.55};
  fast.result.time.exposed_tensor = 1;
  slow.result.time.exposed_tensor = 1.15;
  EXPECT_EQ(why_better(fast, slow),
            "1.0 % faster: 400.000 ms less compute, 300.000 ms less data communication, 250.000 ms "
            "less optimizer, 150.000 ms less tensor communication, 1.000 s more bubble");
}

TEST(WhyBetter, CountsTheOptimizerAndTheHost) {
  Plan fast = plan_of(10, kGiB), slow = plan_of(14, kGiB);
  fast.result.time.compute = slow.result.time.compute = 9;
  fast.result.time.optimizer = 1;
  slow.result.time.optimizer = 2;
  EXPECT_EQ(why_better(fast, slow),
            "40.0 % faster: 3.000 s less waiting for the host, 1.000 s less optimizer");
}

TEST(WhyBetter, OfTwinsThereIsNothingToSay) {
  EXPECT_EQ(why_better(plan_of(10, kGiB), plan_of(10, kGiB)), "as fast");
  EXPECT_EQ(why_better(plan_of(10, kGiB), plan_of(10, 2 * kGiB)), "as fast; 1.00 GiB less memory");
}

TEST(WhyBetter, GoesByWhatTheSoftwareHolds) {
  Plan small = plan_of(10, 4 * kGiB), large = plan_of(10, kGiB);
  small.result.software_held = {.in_use = kGiB, .device = 2 * kGiB, .low = kGiB, .high = 3 * kGiB};
  large.result.software_held = {
      .in_use = 3 * kGiB, .device = 4 * kGiB, .low = 3 * kGiB, .high = 5 * kGiB};
  EXPECT_EQ(why_better(small, large), "as fast; 2.00 GiB less memory");
}

TEST(FinishPlans, PutsWhatSurelyFitsBeforeWhatMayAndTheSimplestFirst) {
  Plans plans;
  plans.best = {plan_of(10, kGiB), plan_of(10.01, kGiB), plan_of(10.02, kGiB)};
  plans.best[0].result.software_held = {
      .in_use = 78 * kGiB, .device = 79 * kGiB, .low = 70 * kGiB, .high = 88 * kGiB};
  plans.best[1].strategy.strategy.zero.stage = 3;
  plans.best[2].strategy.strategy.zero.stage = 1;
  finish_plans(PlanGoal::throughput, 3, plans);
  EXPECT_EQ(plans.best[0].strategy.strategy.zero.stage, 1);
  EXPECT_EQ(plans.best[1].why.find("surely fits; "), 0U) << plans.best[1].why;
  const Table table = plan_table(plans.best, {});
  EXPECT_EQ(cell_of(table, 0, "fits"), Cell(std::string("yes")));
  EXPECT_EQ(cell_of(table, 2, "fits"), Cell(std::string("maybe")));
}

TEST(FinishPlans, OfTheLeastMemorySaysHowMuchLess) {
  Plans plans;
  plans.best = {plan_of(12, kGiB), plan_of(10, kGiB), plan_of(11, 2 * kGiB)};
  plans.best[0].strategy.strategy.zero.stage = 3;
  plans.best[1].strategy.strategy.zero.stage = 3;
  finish_plans(PlanGoal::memory, 3, plans);
  EXPECT_TRUE(plans.best[0].equals_best);
  EXPECT_TRUE(plans.best[1].equals_best);
  EXPECT_FALSE(plans.best[2].equals_best);
  EXPECT_EQ(plans.best[0].result.step_time.median, 10) << "the faster of those that hold as much";
  EXPECT_EQ(plans.best[1].why.find("1.00 GiB less memory; "), 0U) << plans.best[1].why;
}

TEST(PlanTable, MemoryAndHeadroomAreAllOfTheDevice) {
  Plan plan = plan_of(10, 90 * kGiB);
  plan.result.software_held = {
      .in_use = 60 * kGiB, .device = 70 * kGiB, .low = 66 * kGiB, .high = 74 * kGiB};
  const Table table = plan_table({plan}, {});
  EXPECT_EQ(cell_of(table, 0, "memory"), Cell(70 * kGiB));
  EXPECT_EQ(cell_of(table, 0, "headroom"), Cell(10 * kGiB));
  const Json json = plan_json(plan, {});
  EXPECT_EQ(json["memory_bytes"].get<std::int64_t>(), 70 * kGiB);
  EXPECT_EQ(json["headroom_bytes"].get<std::int64_t>(), 10 * kGiB);
  EXPECT_EQ(json["fits"], "yes");
}

// The number is what --pick takes.
TEST(PlanTable, TheFrontierIsNumberedAsTheList) {
  Plans plans;
  plans.best = {plan_of(12, kGiB), plan_of(10, 2 * kGiB)};
  plans.best[1].strategy.strategy.zero.stage = 3;
  plans.frontier = {plans.best[1], plans.best[0], plan_of(13, kGiB / 2)};
  plans.frontier[2].strategy.strategy.micro_batch = 7;
  const Table table = frontier_table(plans, {});
  EXPECT_EQ(cell_of(table, 0, "plan"), Cell(std::int64_t{2}));
  EXPECT_EQ(cell_of(table, 1, "plan"), Cell(std::int64_t{1}));
  EXPECT_EQ(cell_of(table, 2, "plan"), Cell()) << "it is not in the list";
}

TEST(PlanTable, ATerminalHasRoomForWhatWasAskedAndWhatDecides) {
  Plan plan = plan_of(10, kGiB);
  plan.strategy.strategy.recompute = {
      .mode = RecomputeMode::selective, .attention = true, .activation = true};
  const TrainingBill bill{.tokens = 1e12, .gpu_hour_price = 2};
  const auto shown = [](const Table& table, const std::string& name) {
    const Fitted fits = fitted(table, 80);
    return std::ranges::find(fits.table.columns, name, &Column::name) != fits.table.columns.end();
  };
  for (const char* column : {"step", "memory", "fits"}) {
    EXPECT_TRUE(shown(plan_table({plan}, {}), column)) << column;
  }
  for (const char* column : {"step", "days", "cost"}) {
    EXPECT_TRUE(shown(plan_table({plan}, bill), column)) << column;
  }
  plan.strategy.strategy.name = "zero-1 + recompute selective:attention,mlp + tp2 sp pp4 + x";
  const PlanAnswer answer{.cluster = "1024xh100", .gpus = 1024, .best = plan};
  for (const char* column : {"step", "days", "cost", "memory", "fits"}) {
    EXPECT_TRUE(shown(answers_table({answer}, bill), column)) << column;
  }
}

TEST(PlanTable, SaysHowManyLayersOfEachStageAreRecomputed) {
  Plan plan = plan_of(10, kGiB);
  plan.layers = {7, 7, 6};
  plan.strategy.strategy.recompute = {.mode = RecomputeMode::first_blocks, .blocks = 4};
  Table table = plan_table({plan}, {});
  EXPECT_EQ(cell_of(table, 0, "recompute"), Cell(std::string("blocks:4 of 6-7")));
  EXPECT_EQ(plan_json(plan, {})["recomputed_layers"], Json::parse("[4, 4, 4]"));
  plan.strategy.strategy.recompute = {.mode = RecomputeMode::first_blocks,
                                      .stage_blocks = {8, 3, 0}};
  table = plan_table({plan}, {});
  EXPECT_EQ(cell_of(table, 0, "recompute"), Cell(std::string("blocks:8,3,0 of 6-7")));
  EXPECT_EQ(plan_json(plan, {})["recomputed_layers"], Json::parse("[7, 3, 0]"));
  EXPECT_EQ(plan_name(plan.strategy.strategy), "zero-0 + recompute by stage");
  Plan all = plan;
  all.strategy.strategy.recompute = {.mode = RecomputeMode::full};
  EXPECT_EQ(recomputed_beside(plan, all), "10 of 20 layers recomputed, not 20");
  EXPECT_EQ(recomputed_beside(plan, plan), "");
  EXPECT_NE(why_better(plan, all).find("; 10 of 20 layers recomputed, not 20"), std::string::npos);
  plan.layers.assign(16, 7);
  plan.strategy.strategy.recompute.stage_blocks = {7, 6, 5, 4, 3, 2, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0};
  table = plan_table({plan}, {});
  EXPECT_EQ(cell_of(table, 0, "recompute"), Cell(std::string("by stage, 7 to 0 of 7")))
      << "a table has no room for more";
  plan.layers = {7, 7, 6};
  plan.strategy.strategy.recompute = {.mode = RecomputeMode::full};
  table = plan_table({plan}, {});
  EXPECT_EQ(cell_of(table, 0, "recompute"), Cell(std::string("full")));
  EXPECT_EQ(plan_json(plan, {})["recomputed_layers"], Json::parse("[7, 7, 6]"));
}

TEST(PlanTable, WritesLargeCountsInFull) {
  const Plan plan = plan_of(0.1, kGiB);
  const std::string text =
      render(plan_table({plan}, {.tokens = 3e14, .gpu_hour_price = 20}), Format::table);
  EXPECT_NE(text.find("15000000"), std::string::npos) << text;
  EXPECT_EQ(text.find("e+0"), std::string::npos) << text;
}

TEST(RobustnessTable, WritesTokensInFull) {
  Robustness robust;
  robust.tokens_per_second = 2059960.4;
  const Table table = robustness_table({plan_of(10, kGiB)}, {robust});
  EXPECT_EQ(cell_of(table, 0, "tokens/s that last"), Cell(std::int64_t{2059960}));
}

PlanAnswer answer_of(const std::string& cluster, std::int64_t gpus, double seconds) {
  PlanAnswer answer{.cluster = cluster, .gpus = gpus, .sequence_length = 1024};
  answer.best = plan_of(seconds, kGiB);
  answer.best->result.ranks = static_cast<int>(gpus);
  return answer;
}

std::string mark_of(const Table& table, std::size_t row) {
  const Cell& cell = cell_of(table, row, "note");
  const auto* text = std::get_if<std::string>(&cell);
  return text == nullptr ? "" : *text;
}

TEST(Answers, MarkTheFewestGpusAndTheKneeOfOneKindAlone) {
  const TrainingBill bill;
  Table table = answers_table(
      {answer_of("8xh100", 8, 8), answer_of("16xh100", 16, 4.2), answer_of("32xh100", 32, 4)},
      bill);
  EXPECT_EQ(mark_of(table, 0), "fewest that fit");
  EXPECT_EQ(mark_of(table, 1), "knee");
  table = answers_table({answer_of("8xh100", 8, 8), answer_of("16xh100", 16, 4.2)}, bill);
  EXPECT_EQ(mark_of(table, 1), "") << "more GPUs were not tried";
}

TEST(Answers, OfSeveralClustersMarkTheCheapest) {
  std::vector<PlanAnswer> answers{answer_of("8xh100", 8, 4), answer_of("8xh200", 8, 3.5)};
  answers[0].gpu_hour_price = 2;
  answers[1].gpu_hour_price = 3;
  const Table table = answers_table(answers, {.tokens = 1e12, .gpu_hour_price = 2});
  EXPECT_EQ(mark_of(table, 0), "cheapest");
  EXPECT_EQ(mark_of(table, 1), "");
}

TEST(Answers, OfSeveralLengthsMarkNothing) {
  std::vector<PlanAnswer> answers{answer_of("8xh100", 8, 4), answer_of("8xh100", 8, 4)};
  answers[1].sequence_length = 4096;
  const Table table = answers_table(answers, {});
  EXPECT_EQ(mark_of(table, 0) + mark_of(table, 1), "");
}

TEST(Answers, AreJsonWithTheirPlans) {
  std::vector<PlanAnswer> answers{answer_of("8xh100", 8, 4), {.cluster = "4xh100", .gpus = 4}};
  answers[1].refusal = "the smallest plan needs more";
  const Json json = answers_json(answers, {});
  EXPECT_EQ(json["schema"], 1);
  EXPECT_EQ(json["answers"][0]["plan"]["step_time_seconds"], 4);
  EXPECT_TRUE(json["answers"][1]["plan"].is_null());
  EXPECT_EQ(json["answers"][1]["why_not"], "the smallest plan needs more");
}

}  // namespace
}  // namespace zl
