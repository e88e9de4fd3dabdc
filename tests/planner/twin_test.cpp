// A plan made small: what of it stays, and that its training is what was recorded.
#include "scenarios/planner/twin.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "scenarios/files/clusters.h"
#include "scenarios/files/load_scenario.h"
#include "scenarios/run/replay.h"
#include "scenarios/run/runner.h"

namespace zl {
namespace {

// The named strategies of the catalogue on GPUs, with a mesh of their own.
Scenario planned(const std::string& model, std::int64_t ranks, const std::string& parallel,
                 const std::string& rest = "", const std::string& precision = "bf16") {
  const std::string text = R"({"schema": 1, "model": ")" + model + R"(", "cluster": ")" +
                           std::to_string(ranks) + R"(xh100", "strategies": [{)" + rest +
                           R"( "gradient_accumulation_steps": 16,
                           "x-zerolab": {"parallel": )" +
                           parallel + R"(}}], "run": {"precision": ")" + precision + "\"}}";
  return scenario_from_json(text, "planned");
}

Scenario twin(const Scenario& scenario) { return twin_of(scenario, scenario.strategies.front()); }

TEST(Twin, KeepsTheAxesOfTheMesh) {
  const Scenario plan =
      planned("llama3-8b", 64, R"({"tensor": 8, "pipeline": 4, "sequence_parallel": true})",
              R"("zero_optimization": {"stage": 1},)");
  const Scenario small = twin(plan);
  const Strategy& strategy = small.strategies.front().strategy;
  EXPECT_EQ(small.run.ranks, 8);
  EXPECT_EQ(strategy.tensor.ranks, 2);
  EXPECT_EQ(strategy.pipeline.ranks, 2) << "no room for more";
  EXPECT_TRUE(strategy.tensor.sequence_parallel);
  EXPECT_EQ(strategy.zero.stage, 1);
  EXPECT_EQ(small.model.activation, plan.model.activation);
  EXPECT_LT(small.model.kv_heads, small.model.heads) << "grouped queries";
  EXPECT_LT(small.model.parameters(), 4'000'000);
  EXPECT_EQ(small.cluster, "local");

  const Scenario deep = twin(planned("gpt2-124m", 16, R"({"pipeline": 4})"));
  EXPECT_EQ(deep.strategies.front().strategy.pipeline.ranks, 4);
  EXPECT_EQ(deep.run.ranks, 8);
  // A layer of each stage, recomputed where the plan recomputes some.
  const Scenario staged =
      twin(planned("llama3-8b", 64, R"({"pipeline": 8}, "recompute": "blocks:4,4,3,2,1,0,0,0")"));
  EXPECT_EQ(staged.strategies.front().strategy.recompute.stage_blocks,
            (std::vector<std::int64_t>{1, 1, 1, 0}));
  const Scenario one = twin(planned("gpt2-124m", 1, "{}"));
  EXPECT_EQ(one.run.ranks, 1);
}

// What a step takes beside its work is predicted badly.
TEST(Twin, TakesLongEnoughToBePredicted) {
  const Scenario small = twin(planned("gpt2-124m", 2, R"({"pipeline": 2})"));
  const Replay run = replay(small, small.strategies.front());
  const RunResult result = price_run(small, run.recording, scenario_cluster(small));
  EXPECT_TRUE(result.step_time.median >= 0.05 || small.run.sequence_length == 2048)
      << result.step_time.median << " s with " << small.run.sequence_length << " tokens";
  EXPECT_GT(small.run.sequence_length, 128);
}

class TwinTest : public testing::TestWithParam<std::pair<const char*, const char*>> {};

TEST_P(TwinTest, TrainsWhatWasRecorded) {
  const auto [parallel, rest] = GetParam();
  Scenario small = twin(planned("llama3-8b", 64, parallel, rest));
  small.run.steps = 3;
  const Runner runner;
  const RunResult real = runner.run(small, small.strategies.front(), "cpu", {});
  ASSERT_EQ(real.outcome, Outcome::ok) << real.message;
  EXPECT_LT(real.loss.back(), real.loss.front());
  const RunResult recorded = recorded_books(small);
  EXPECT_TRUE(has_equal_books(real, recorded)) << render(books_table(real, recorded), Format::md);
  EXPECT_GT(books_table(real, recorded).rows.size(), 3U);
  RunResult other = recorded;
  other.communication.front().bytes += 1;
  EXPECT_FALSE(has_equal_books(real, other));
}

// fp16 from a scale that overflows.
TEST(Twin, SkipsTheStepsThatItsTrainingSkipped) {
  Scenario small = twin(planned(
      "llama3-8b", 64, "{}", R"("fp16": {"enabled": true, "initial_scale_power": 30},)", "fp16"));
  small.run.steps = 8;
  const RunResult real = Runner().run(small, small.strategies.front(), "cpu", {});
  ASSERT_GT(real.skipped_steps, 0);
  EXPECT_FALSE(has_equal_books(real, recorded_books(small)));
  EXPECT_TRUE(has_equal_books(real, recorded_books(small, overflowed_steps(real))));
}

INSTANTIATE_TEST_SUITE_P(
    Plans, TwinTest,
    testing::Values(std::pair{R"({"tensor": 8, "pipeline": 2})",
                              R"("zero_optimization": {"stage": 1},)"},
                    std::pair{R"({"pipeline": 4, "schedule": "zb-h1"})", ""},
                    std::pair{R"({"pipeline": 2, "virtual_stages": 2, "schedule": "interleaved"})",
                              R"("zero_optimization": {"stage": 1},)"},
                    std::pair{"{}", R"("zero_optimization": {"stage": 3},)"}));

}  // namespace
}  // namespace zl
