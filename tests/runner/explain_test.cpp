// What explains a prediction adds up to it, and names what it is bound by.
#include "scenarios/run/explain.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "scenarios/files/load_scenario.h"

namespace zl {
namespace {

Scenario llama_on_a_node(std::vector<std::string> strategies) {
  ScenarioOverrides overrides;
  overrides.cluster = "8xh100";
  overrides.strategies = std::move(strategies);
  return load_scenario("llama3-8b", overrides);
}

Explanation explained(const std::string& strategy) {
  const Scenario scenario = llama_on_a_node({strategy});
  return explain(scenario, scenario.strategies[0]);
}

const StepItem* item(const Explanation& why, const std::string& operation) {
  const auto found = std::ranges::find_if(
      why.step, [&](const StepItem& each) { return each.operation.starts_with(operation); });
  return found == why.step.end() ? nullptr : &*found;
}

TEST(Explain, TheOpsAddUpToTheComputeAndTheFlopsOfAStep) {
  for (const char* strategy : {"zero-0", "zero-3"}) {
    const Explanation why = explained(strategy);
    double computing = 0, flops = 0;
    for (const StepItem& each : why.step) {
      EXPECT_LE(each.of_peak(), 1) << each.operation;
      EXPECT_GT(each.count, 0);
      if (each.limit == "nvlink4" || each.limit == "pcie5") continue;  // other streams
      computing += each.seconds;
      flops += each.flops;
    }
    const TimeBreakdown& time = why.result.time;
    EXPECT_NEAR(computing / (time.compute + time.optimizer), 1, 1e-6) << strategy;
    // Beside the model's products and scores: the norms, the rotations, the update.
    EXPECT_NEAR(flops / (why.result.model_flops_per_step / 8), 1, 0.1) << strategy;
  }
}

TEST(Explain, ThePeakIsTheLedgers) {
  const Explanation why = explained("zero-3");
  std::int64_t bytes = 0;
  for (const sim::HeldItem& each : why.peak) bytes += each.bytes;
  EXPECT_EQ(bytes, why.result.peak_device.total());
  EXPECT_EQ(why.peak.front().what, "mlp up");
  EXPECT_EQ(why.peak.front().blocks, 32);
}

TEST(Explain, OtherSoftwaresBytesAreAPredictionWithABar) {
  const Explanation why = explained("zero-3");
  ASSERT_TRUE(why.software.bytes.has_value()) << why.software.why_not;
  const SoftwareBytes& bytes = *why.software.bytes;
  EXPECT_EQ(bytes.software, "torch-fsdp2-compile");
  EXPECT_LT(bytes.least(), bytes.held.total());
  EXPECT_GT(bytes.most(), bytes.held.total());
  EXPECT_FALSE(explained("zero-1").software.bytes.has_value());  // PyTorch has no such stage
}

TEST(Explain, EachIsBoundByWhatItWaitsFor) {
  const Explanation why = explained("zero-3");
  EXPECT_EQ(item(why, "gemm")->limit, "compute");
  EXPECT_EQ(item(why, "adam_step")->limit, "memory");
  EXPECT_EQ(item(why, "all_gather")->limit, "nvlink4");
  ASSERT_FALSE(why.levers.empty());
  EXPECT_EQ(why.levers.front().twice, "FLOP/s");
  for (const Lever& each : why.levers) {
    EXPECT_LT(each.step_seconds, why.result.step_time.median);
    EXPECT_GT(each.step_seconds, 0.5 * why.result.step_time.median) << each.twice;
    EXPECT_NE(each.twice, "bandwidth between nodes") << "there is one node";
  }
}

// Rounds that a recording holds once came often.
TEST(Explain, APipelinesRoundsAreAllCounted) {
  Scenario scenario = llama_on_a_node({"zero-1"});
  ImportedStrategy& strategy = scenario.strategies[0];
  strategy.strategy.pipeline = {.ranks = 4, .schedule = PipelineKind::one_f_one_b};
  const auto attentions = [&](std::int64_t micro_batches) {
    strategy.strategy.gradient_accumulation = micro_batches;
    const Explanation why = explain(scenario, strategy);
    return item(why, "attention_forward")->count;
  };
  EXPECT_EQ(attentions(64), 64 * 8);
  EXPECT_EQ(attentions(16), 16 * 8);
}

}  // namespace
}  // namespace zl
