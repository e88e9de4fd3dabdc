// The library's front door: what it refuses, and that it trains alike under every stage.
#include <gtest/gtest.h>

#include "core/train/initialize.h"
#include "tests/engine/runs.h"

namespace zl::test {
namespace {

std::string message_of(const ModelConfig& model, const Strategy& s, const SessionOptions& options) {
  std::string message;
  cpu::make_world({1, 1})->run([&](RankHandle rank) {
    try {
      initialize(model, s, rank.device, rank.communicator, options);
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::invalid);
      message = error.what();
    }
  });
  return message;
}

TEST(Initialize, RefusesWhatCannotRun) {
  Strategy s = strategy(0);
  SessionOptions options;
  options.sequence_length = 25;  // one more than the model has positions
  EXPECT_NE(message_of(tiny_gpt2(), s, options).find("sequence_length: 25"), std::string::npos);
  s.zero.stage = 4;
  EXPECT_NE(message_of(tiny_gpt2(), s, {}).find("zero_stage: 4"), std::string::npos);
  s = strategy(0);
  s.micro_batch = 0;
  EXPECT_NE(message_of(tiny_gpt2(), s, {}).find("micro_batch"), std::string::npos);
  ModelConfig model = tiny_gpt2();
  model.heads = 5;  // does not divide 48
  EXPECT_NE(message_of(model, strategy(0), {}).find("heads"), std::string::npos);
}

TEST(Initialize, OnebitAdamNeedsWholeGradients) {
  for (const int stage : {2, 3}) {
    Strategy s = strategy(stage);
    s.optimizer.kind = OptimizerKind::onebit_adam;
    const std::string message = message_of(tiny_gpt2(), s, {});
    EXPECT_TRUE(message.starts_with("strategy.zero_stage: " + std::to_string(stage))) << message;
    EXPECT_NE(message.find("use stage 0 or 1"), std::string::npos) << message;
  }
}

TEST(Initialize, TrainsUnderEveryStage) {
  double of_stage_0 = 0;
  for (int stage = 0; stage <= 3; ++stage) {
    double first = 0, last = 0;
    cpu::make_world({2, 1})->run([&](RankHandle rank) {
      Session session = initialize(tiny_gpt2(), strategy(stage), rank.device, rank.communicator);
      const std::vector<std::int32_t> tokens(48, 7), targets(48, 9);
      for (int step = 0; step < 5; ++step) {
        session.forward(tokens, targets);
        session.backward();
        const StepMetrics metrics = session.step();
        if (rank.communicator.rank() != 0) continue;
        (step == 0 ? first : last) = metrics.loss;
      }
    });
    EXPECT_LT(last, first / 2) << "stage " << stage;  // always the same answer: soon known
    if (stage == 0) of_stage_0 = last;
    EXPECT_EQ(last, of_stage_0) << "stage " << stage;
  }
}

}  // namespace
}  // namespace zl::test
