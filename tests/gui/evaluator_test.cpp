#include <gtest/gtest.h>

#include <set>

#include "gui/fit.h"
#include "gui/study.h"
#include "scenarios/run/runner.h"
#include "tests/gui/helpers.h"

namespace zl::gui {
namespace {

const std::atomic<bool> kGoOn{false};

TEST(Evaluator, AgreesWithTheRunner) {
  const auto study = Evaluator().evaluate(test::llama_on_a_node(), kGoOn);
  ASSERT_EQ(study->strategies.size(), 5u);
  int fitting = 0;
  for (const StrategyStudy& each : study->strategies) {
    const RunResult run = Runner().run(study->scenario, each.imported, "sim");
    EXPECT_EQ(each.result.outcome, run.outcome) << each.name();
    if (run.outcome != Outcome::ok) {
      EXPECT_GT(each.result.peak_device.total(), study->budget) << "still says how much it needs";
      EXPECT_NE(each.result.message.find("GiB more than"), std::string::npos);
      continue;
    }
    ++fitting;
    EXPECT_EQ(each.result.step_time.median, run.step_time.median) << each.name();
    EXPECT_EQ(each.result.peak_device.tag, run.peak_device.tag) << each.name();
    EXPECT_EQ(each.result.wire_bytes_per_step, run.wire_bytes_per_step) << each.name();
  }
  EXPECT_GE(fitting, 1);
  EXPECT_LT(fitting, 5);
}

TEST(Evaluator, AnotherClusterIsOnlyPricedAgain) {
  Evaluator evaluator;
  const Document document = test::llama_on_a_node();
  EXPECT_EQ(evaluator.evaluate(document, kGoOn)->recorded, 5);
  const auto other = evaluator.evaluate(document.with("cluster", "8xb200"), kGoOn);
  EXPECT_EQ(other->recorded, 0);
  EXPECT_EQ(evaluator.evaluate(document.with("run.micro_batch", "2"), kGoOn)->recorded, 5);
}

TEST(Evaluator, ACancelledRequestGivesNothing) {
  const std::atomic<bool> cancelled{true};
  EXPECT_EQ(Evaluator().evaluate(test::llama_on_a_node(), cancelled), nullptr);
}

TEST(Fit, EveryAdviceReallyFitsAndKeepsTheGlobalBatch) {
  Evaluator evaluator;
  const auto study =
      evaluator.evaluate(test::llama_on_a_node().with("run.micro_batch", "2"), kGoOn);
  const StrategyStudy& misfit = study->strategies.front();
  ASSERT_FALSE(misfit.fits());
  const auto candidates = fit_candidates(*study, misfit);
  std::set<std::string> names;
  for (const Variation& each : candidates) EXPECT_TRUE(names.insert(each.name).second);
  const auto evaluated = evaluator.evaluate(fit_document(*study, candidates), kGoOn);
  const auto advice = fit_advice(*evaluated, misfit, candidates);
  ASSERT_FALSE(advice.empty());
  for (std::size_t i = 1; i < advice.size(); ++i) {
    EXPECT_LE(advice[i - 1].candidate->changes.size(), advice[i].candidate->changes.size());
  }
  const Document changed = with_variation(*study, misfit, *advice.front().candidate);
  const auto after = evaluator.evaluate(changed, kGoOn);
  const StrategyStudy& fixed = after->strategies.front();
  EXPECT_TRUE(fixed.fits());
  EXPECT_DOUBLE_EQ(fixed.result.step_time.median, advice.front().step_time);
  const auto batch = [](const StrategyStudy& each) {
    return each.imported.strategy.micro_batch * each.imported.strategy.gradient_accumulation;
  };
  EXPECT_EQ(batch(fixed), batch(misfit));
}

}  // namespace
}  // namespace zl::gui
