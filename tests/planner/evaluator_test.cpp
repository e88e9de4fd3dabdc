// What the planner says of a scenario is what the runner says, and only what changed is recorded.
#include "scenarios/planner/evaluator.h"

#include <gtest/gtest.h>

#include "scenarios/run/runner.h"
#include "tests/planner/documents.h"

namespace zl {
namespace {

std::shared_ptr<const Study> evaluated(const Document& document) {
  return Evaluator().evaluate(document, test::kGoOn);
}

TEST(Evaluator, AgreesWithTheRunner) {
  const auto study = evaluated(test::llama_on_a_node());
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
    EXPECT_EQ(each.result.reserved_device, run.reserved_device) << each.name();
    EXPECT_EQ(each.result.wire_bytes_per_step, run.wire_bytes_per_step) << each.name();
  }
  EXPECT_GE(fitting, 1);
  EXPECT_LT(fitting, 5);
}

// From what fits in no way to what fits easily: also where the pool has to take small slabs.
TEST(Evaluator, AgreesWithTheRunnerAtEveryBudget) {
  const Document document = test::tiny_study().with_strategies({"zero-1"});
  const auto whole = evaluated(document);
  const std::int64_t peak = whole->strategies[0].result.peak_device.total();
  const std::int64_t reserved = whole->strategies[0].result.reserved_device;
  ASSERT_GT(reserved, peak);
  const std::int64_t granule = 512;
  int fitting = 0, refused = 0;
  for (const std::int64_t budget : {peak / 2, peak - 1, peak, peak + granule, peak + 16 * granule,
                                    (peak + reserved) / 2, reserved - 1, reserved, reserved + 1}) {
    const auto study = evaluated(document.with("run.device_memory", std::to_string(budget) + "B"));
    const StrategyStudy& strategy = study->strategies[0];
    const RunResult run = Runner().run(study->scenario, strategy.imported, "sim");
    ASSERT_EQ(strategy.result.outcome, run.outcome) << budget;
    ++(strategy.fits() ? fitting : refused);
    if (strategy.fits()) {
      EXPECT_EQ(strategy.result.reserved_device, run.reserved_device) << budget;
    } else {
      EXPECT_FALSE(strategy.result.message.empty()) << budget;
    }
  }
  EXPECT_GE(fitting, 3);
  EXPECT_GE(refused, 2);
}

TEST(Evaluator, TheBudgetOfOffloadedBytesIsJudgedToo) {
  const Document document = test::tiny_study().with_strategies({"zero-2-offload-cpu"});
  const auto whole = evaluated(document);
  const std::int64_t needed = whole->strategies[0].result.peak_host.total();
  ASSERT_GT(needed, 0);
  for (const std::int64_t budget : {needed / 2, 2 * needed}) {
    const auto study = evaluated(document.with("run.host_memory", std::to_string(budget) + "B"));
    const StrategyStudy& strategy = study->strategies[0];
    const RunResult run = Runner().run(study->scenario, strategy.imported, "sim");
    EXPECT_EQ(strategy.result.outcome, run.outcome) << budget;
    EXPECT_EQ(strategy.fits(), budget > needed);
    ASSERT_NE(strategy.recording, nullptr) << "what does not fit is shown as if it did";
    EXPECT_EQ(strategy.result.peak_host.total(), needed);
  }
}

// A budget above the device's memory is no more than the device's memory, for both.
TEST(Evaluator, AgreesWithTheRunnerOnWhatToRecompute) {
  const Document document =
      test::llama_on_a_node()
          .with_strategies({R"({"zero_optimization": {"stage": 3}, "bf16": {"enabled": true},
              "train_micro_batch_size_per_gpu": 6, "x-zerolab": {"recompute": "auto"}})"})
          .with("run.device_memory", "1TiB")
          .with("run.software", "zerolab");
  const auto study = evaluated(document);
  const StrategyStudy& strategy = study->strategies[0];
  ASSERT_TRUE(strategy.fits());
  EXPECT_GT(strategy.recording->strategy.recompute.blocks, 0) << "there is something to plan";
  const RunResult run = Runner().run(study->scenario, strategy.imported, "sim");
  EXPECT_EQ(run.outcome, Outcome::ok) << run.message;
  EXPECT_EQ(run.step_time.median, strategy.result.step_time.median);
}

// The recording is kept, the verdict is another.
TEST(Evaluator, AnotherSoftwareIsJudgedAnew) {
  Evaluator evaluator;
  const Document document = test::llama_on_a_node().with_strategies(
      {R"({"zero_optimization": {"stage": 3}, "bf16": {"enabled": true},
           "train_micro_batch_size_per_gpu": 6, "x-zerolab": {"recompute": "full"}})"});
  const auto own = evaluator.evaluate(document.with("run.software", "zerolab"), test::kGoOn);
  EXPECT_TRUE(own->strategies[0].fits());
  const auto other = evaluator.evaluate(document.with("run.software", "torch-fsdp2"), test::kGoOn);
  EXPECT_EQ(other->recorded, 0);
  EXPECT_FALSE(other->strategies[0].fits()) << "six sequences' logits in fp32 thrice";
  EXPECT_EQ(other->strategies[0].reserved(), other->strategies[0].result.software_held.device);
}

TEST(Evaluator, AnotherClusterIsOnlyPricedAgain) {
  Evaluator evaluator;
  const Document document = test::llama_on_a_node();
  EXPECT_EQ(evaluator.evaluate(document, test::kGoOn)->recorded, 5);
  const auto other = evaluator.evaluate(document.with("cluster", "8xb200"), test::kGoOn);
  EXPECT_EQ(other->recorded, 0);
  EXPECT_EQ(other->priced, 5);
  EXPECT_EQ(evaluator.evaluate(document, test::kGoOn)->priced, 0) << "of the cluster before";
  EXPECT_EQ(evaluator.evaluate(document.with("run.micro_batch", "2"), test::kGoOn)->recorded, 5);
}

// What a recording does not see records nothing anew, and changes no number.
TEST(Evaluator, WhatNoRecordingSeesIsNotRecordedAgain) {
  Evaluator evaluator;
  const Document document = test::llama_on_a_node().with_strategies({"zero-0", "zero-2"});
  const auto first = evaluator.evaluate(document, test::kGoOn);
  for (const auto& [key, value] : {std::pair{"run.seed", "7"}, std::pair{"run.data", "synthetic"},
                                   std::pair{"run.deterministic", "false"}}) {
    const Document next = document.with(key, value);
    const auto again = evaluator.evaluate(next, test::kGoOn);
    const auto anew = Evaluator().evaluate(next, test::kGoOn);
    EXPECT_EQ(again->recorded, 0) << key;
    ASSERT_EQ(again->strategies.size(), 2u);
    for (std::size_t i = 0; i < 2; ++i) {
      EXPECT_EQ(again->strategies[i].recording, first->strategies[i].recording) << key;
      const RunResult &kept = again->strategies[i].result, &own = anew->strategies[i].result;
      EXPECT_EQ(kept.step_time.median, own.step_time.median) << key;
      EXPECT_EQ(kept.peak_device, own.peak_device) << key;
      EXPECT_EQ(kept.reserved_device, own.reserved_device) << key;
      EXPECT_EQ(kept.need.reserved, own.need.reserved) << key;
      EXPECT_EQ(kept.message, own.message) << key;
      EXPECT_EQ(kept.setup.data, own.setup.data) << "whose it is now";
      EXPECT_EQ(kept.warnings, own.warnings) << "not twice";
    }
  }
}

TEST(Evaluator, AnEditOfOneStrategyLeavesTheOthersPriced) {
  Evaluator evaluator;
  const Document document = test::llama_on_a_node().with_strategies({"zero-0", "zero-2"});
  const auto first = evaluator.evaluate(document, test::kGoOn);
  const auto second =
      evaluator.evaluate(document.with_strategies({"zero-3", "zero-2"}), test::kGoOn);
  EXPECT_EQ(second->recorded, 1);
  EXPECT_EQ(second->strategies[1].recording, first->strategies[1].recording);
  EXPECT_EQ(second->strategies[1].result.step_time.median,
            first->strategies[1].result.step_time.median);
  // Another price of the same recordings is another answer.
  const auto slower = evaluator.evaluate(document.with("run.link_bandwidth", "1Gbit"), test::kGoOn);
  EXPECT_EQ(slower->recorded, 0);
  EXPECT_GT(slower->strategies[1].result.step_time.median,
            first->strategies[1].result.step_time.median);
}

TEST(Evaluator, ACancelledRequestGivesNothing) {
  const std::atomic<bool> cancelled{true};
  EXPECT_EQ(Evaluator().evaluate(test::llama_on_a_node(), cancelled), nullptr);
}

}  // namespace
}  // namespace zl
