// A run whose loss is lost ends there, failed, with its steps; an overflow that fp16's loss scale
// makes up for is no loss.
#include <gtest/gtest.h>

#include <cmath>

#include "tests/engine/runs.h"

namespace zl::test {
namespace {

constexpr int kRanks = 2;

Strategy exploding() {
  Strategy s = strategy(2);
  s.optimizer.lr = 1e38;
  return s;
}

TEST(LostLoss, EndsTheRunOnAllRanks) {
  const Finished lost = run_cpu(kRanks, tiny_gpt2(), exploding(), steps(50));
  EXPECT_EQ(lost.result.outcome, Outcome::failed);
  EXPECT_LT(lost.result.steps, 10);
  ASSERT_EQ(lost.result.loss.size(), static_cast<std::size_t>(lost.result.steps));
  EXPECT_FALSE(std::isfinite(lost.result.loss.back()));
  EXPECT_TRUE(std::isfinite(lost.result.loss.front()));
  EXPECT_NE(lost.result.message.find("not finite at step " + std::to_string(lost.result.steps)),
            std::string::npos)
      << lost.result.message;
  EXPECT_NE(lost.result.message.find("--keep-going"), std::string::npos);
  EXPECT_TRUE(lost.result.warnings.empty()) << "the message says it";
}

TEST(LostLoss, GoesOnWhereAsked) {
  ProgramOptions options = steps(10);
  options.keep_going = true;
  const Finished lost = run_cpu(kRanks, tiny_gpt2(), exploding(), options);
  EXPECT_EQ(lost.result.outcome, Outcome::ok);
  EXPECT_EQ(lost.result.steps, 10);
  ASSERT_EQ(lost.result.warnings.size(), 1u);
}

TEST(LostLoss, AnOverflowOfFp16IsNone) {
  Strategy s = strategy(2, DType::f16);
  s.loss_scaler.initial_scale_power = 32;
  const Finished scaled = run_cpu(kRanks, tiny_gpt2(), s, steps(25));
  EXPECT_GT(scaled.result.skipped_steps, 0);
  EXPECT_EQ(scaled.result.outcome, Outcome::ok) << scaled.result.message;
  EXPECT_EQ(scaled.result.steps, 25);
}

}  // namespace
}  // namespace zl::test
