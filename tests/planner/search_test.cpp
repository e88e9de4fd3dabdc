// Searches: what makes a strategy fit, and every combination of its choices.
#include <gtest/gtest.h>

#include <set>

#include "core/pipeline/pipeline.h"
#include "scenarios/planner/evaluator.h"
#include "scenarios/planner/fit.h"
#include "scenarios/planner/sweep.h"
#include "tests/planner/documents.h"

namespace zl {
namespace {

std::int64_t global_batch(const StrategyStudy& each) { return each.result.setup.tokens_per_step; }

TEST(Fit, EveryAdviceReallyFitsAndKeepsTheGlobalBatch) {
  Evaluator evaluator;
  const auto study =
      evaluator.evaluate(test::llama_on_a_node().with("run.micro_batch", "2"), test::kGoOn);
  const StrategyStudy& misfit = study->strategies.front();
  ASSERT_FALSE(misfit.fits());
  const auto candidates = fit_candidates(*study, misfit);
  std::set<std::string> names;
  for (const Variation& each : candidates) EXPECT_TRUE(names.insert(each.name).second);
  const auto evaluated = evaluator.evaluate(fit_document(*study, candidates), test::kGoOn);
  const auto advice = fit_advice(*evaluated, misfit, candidates);
  ASSERT_FALSE(advice.empty());
  for (std::size_t i = 1; i < advice.size(); ++i) {
    EXPECT_LE(advice[i - 1].candidate->changes.size(), advice[i].candidate->changes.size());
  }
  const Document changed = with_variation(*study, misfit, *advice.front().candidate);
  const auto after = evaluator.evaluate(changed, test::kGoOn);
  const StrategyStudy& fixed = after->strategies.front();
  EXPECT_TRUE(fixed.fits());
  EXPECT_DOUBLE_EQ(fixed.result.step_time.median, advice.front().step_time);
  EXPECT_EQ(global_batch(fixed), global_batch(misfit));
}

TEST(Fit, TriesMeshesThatKeepTheGlobalBatch) {
  Evaluator evaluator;
  const auto study = evaluator.evaluate(
      test::llama_on_a_node().with_strategies({"zero-0"}).with("run.micro_batch", "1"),
      test::kGoOn);
  const StrategyStudy& misfit = study->strategies.front();
  std::vector<Variation> meshes;
  for (const Variation& each : fit_candidates(*study, misfit)) {
    if (each.changes == std::vector<std::string>{"mesh tp1 pp1 → tp2 pp4"} ||
        each.changes == std::vector<std::string>{"mesh tp1 pp1 → tp8 pp1"}) {
      meshes.push_back(each);
    }
  }
  ASSERT_EQ(meshes.size(), 2U);
  EXPECT_EQ(meshes[0].name, "zero-0 + tp2 pp4");
  EXPECT_EQ(meshes[1].name, "zero-0 + tp8");
  const auto evaluated = evaluator.evaluate(fit_document(*study, meshes), test::kGoOn);
  for (const StrategyStudy& each : evaluated->strategies) {
    EXPECT_EQ(global_batch(each), global_batch(misfit)) << each.name();
    EXPECT_LT(each.result.peak_device.total(), misfit.result.peak_device.total()) << each.name();
  }
  EXPECT_EQ(evaluated->strategies[0].result.stages.size(), 4U);
}

std::shared_ptr<const Study> tiny_zero_1() {
  return Evaluator().evaluate(test::tiny_study().with_strategies({"zero-1"}), test::kGoOn);
}

TEST(Sweep, EveryCombinationIsJudgedAsTheScenarioWouldBe) {
  const auto study = tiny_zero_1();
  const StrategyStudy& base = study->strategies[0];
  std::vector<Variation> some;
  for (const Variation& each : sweep_variations(*study, base)) {
    if (each.changes.size() == 1) some.push_back(each);
  }
  std::vector<SweepRow> rows;
  sweep(*study, base, some, test::kGoOn, [&](SweepRow row) { rows.push_back(std::move(row)); });
  ASSERT_EQ(rows.size(), some.size() + 1) << "and the strategy as it is";
  EXPECT_TRUE(rows[0].variation.changes.empty());
  EXPECT_EQ(rows[0].step_time, base.result.step_time.median);
  std::set<int> stages;
  std::set<std::string> offloads;
  std::set<std::pair<std::int64_t, std::int64_t>> meshes;
  std::set<std::string> schedules;
  for (const SweepRow& row : rows) {
    stages.insert(row.stage);
    offloads.insert(row.offload);
    meshes.emplace(row.tensor, row.pipeline);
    schedules.insert(row.schedule);
    if (row.variation.changes.empty()) continue;
    const auto alone = Evaluator()
                           .evaluate(with_variation(*study, base, row.variation), test::kGoOn)
                           ->strategies[0];
    EXPECT_EQ(alone.name(), row.variation.name);
    EXPECT_EQ(alone.imported.strategy.zero.stage, row.stage);
    EXPECT_EQ(alone.imported.strategy.micro_batch, row.micro_batch);
    EXPECT_EQ(alone.result.step_time.median, row.step_time) << row.variation.name;
    const PipelineConfig& pipeline = alone.imported.strategy.pipeline;
    EXPECT_EQ(pipeline.ranks > 1 ? name_of(pipeline.schedule) : "none", row.schedule);
    EXPECT_EQ(alone.result.peak_device.total(), row.peak_device) << row.variation.name;
  }
  EXPECT_EQ(stages, (std::set{0, 1, 2, 3}));
  EXPECT_EQ(meshes, (std::set<std::pair<std::int64_t, std::int64_t>>{{1, 1}, {1, 2}, {2, 1}}));
  EXPECT_GE(offloads.size(), 2u);
  EXPECT_EQ(schedules, (std::set<std::string>{"none", "1f1b", "zb-h1"}))
      << "two layers: one for each of two stages";
}

TEST(Sweep, ACancelledOneEndsAtOnce) {
  const auto study = tiny_zero_1();
  const StrategyStudy& base = study->strategies[0];
  std::atomic<bool> cancelled{false};
  int found = 0;
  sweep(*study, base, sweep_variations(*study, base), cancelled,
        [&](const SweepRow&) { cancelled = ++found == 3; });
  EXPECT_EQ(found, 3);
}

}  // namespace
}  // namespace zl
