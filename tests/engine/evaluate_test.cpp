// Validation loss: the same under every ZeRO stage, without dropout, and without a trace in the
// training that goes on.
#include <cmath>

#include "core/data/token_source.h"
#include "tests/engine/comparisons.h"

namespace zl::test {
namespace {

constexpr int kRanks = 2;

Batch batch_of(const ModelConfig& model, int step, int rank) {
  return TokenSource::synthetic(model.vocab, 3)
      .batch({.step = step,
              .rank = rank,
              .ranks = kRanks,
              .micro_batch = 2,
              .sequence_length = model.max_sequence});
}

struct Losses {
  std::vector<double> training, evaluation;
};

// Trains three steps; with `evaluates` asks for the loss of one batch before each and at the end.
Losses train(const ModelConfig& model, const Strategy& s, bool evaluates) {
  Losses losses;
  cpu::make_world({kRanks, 1})->run([&](RankHandle handle) {
    const int rank = handle.communicator.rank();
    RankContext context(handle.device, handle.communicator);
    Engine engine(context, model, s, model.max_sequence, 11);
    const auto evaluate = [&] {
      if (!evaluates) return;
      const double loss = engine.evaluate(batch_of(model, 100, rank));
      if (rank == 0) losses.evaluation.push_back(loss);
    };
    for (int step = 0; step < 3; ++step) {
      evaluate();
      const Batch batch = batch_of(model, step, rank);
      for (int micro = 0; micro < s.gradient_accumulation; ++micro) {
        engine.forward(batch.tokens, batch.targets);
        engine.backward();
      }
      const double loss = engine.step().loss;
      if (rank == 0) losses.training.push_back(loss);
    }
    evaluate();
  });
  return losses;
}

std::vector<Strategy> strategies() {
  std::vector<Strategy> all;
  for (int stage = 0; stage <= 3; ++stage) {
    for (const bool overlap : {false, true}) {
      Strategy s = strategy(stage);
      s.zero.overlap_comm = overlap;
      all.push_back(s);
      s.gradient_accumulation = 2;
      s.recompute.mode = RecomputeMode::every_k;
      s.recompute.every = 2;
      s.zero.max_reuse_distance = 1'000'000;
      all.push_back(s);
    }
  }
  return all;
}

TEST(Evaluate, LeavesNoTraceInTheTraining) {
  for (const ModelConfig& model : {with_dropout(tiny_gpt2()), tiny_llama()}) {
    for (const Strategy& s : strategies()) {
      EXPECT_EQ(train(model, s, true).training, train(model, s, false).training) << s.name;
    }
  }
}

TEST(Evaluate, IsTheSameUnderEveryStage) {
  for (const ModelConfig& model : {tiny_gpt2(), tiny_llama()}) {
    std::vector<double> first;
    for (const Strategy& s : strategies()) {
      if (s.gradient_accumulation > 1) continue;  // trains on other weights
      const std::vector<double> found = train(model, s, true).evaluation;
      if (first.empty()) first = found;
      EXPECT_EQ(found, first) << model.name << " " << s.name << " " << s.zero.overlap_comm;
    }
    EXPECT_NE(first.front(), first.back());
  }
}

// The loss of a step is of the weights before it, so without dropout the two are one number.
TEST(Evaluate, IsTheTrainingLossWithoutDropout) {
  const ModelConfig plain = tiny_gpt2(), dropped = with_dropout(plain);
  double trained = 0, evaluated = 0, evaluated_dropped = 0, trained_dropped = 0;
  cpu::make_world({1, 1})->run([&](RankHandle handle) {
    const Batch batch = TokenSource::synthetic(plain.vocab, 3)
                            .batch({.micro_batch = 2, .sequence_length = plain.max_sequence});
    const auto both = [&](const ModelConfig& model, double& evaluation, double& training) {
      RankContext context(handle.device, handle.communicator);
      Engine engine(context, model, strategy(0), model.max_sequence, 11);
      evaluation = engine.evaluate(batch);
      engine.forward(batch.tokens, batch.targets);
      engine.backward();
      training = engine.step().loss;
    };
    both(plain, evaluated, trained);
    both(dropped, evaluated_dropped, trained_dropped);
  });
  EXPECT_EQ(evaluated, trained);
  EXPECT_EQ(evaluated_dropped, trained);
  EXPECT_NE(trained_dropped, trained);
}

// Rows whose target is -1 neither count nor weigh.
TEST(Evaluate, AveragesOverTheRowsThatCount) {
  const ModelConfig model = tiny_gpt2();
  double all = 0, front = 0, back = 0;
  cpu::make_world({1, 1})->run([&](RankHandle handle) {
    const Batch batch = TokenSource::synthetic(model.vocab, 3)
                            .batch({.micro_batch = 2, .sequence_length = model.max_sequence});
    RankContext context(handle.device, handle.communicator);
    Engine engine(context, model, strategy(0), model.max_sequence, 11);
    const std::size_t rows = batch.targets.size(), cut = rows / 3;
    const auto without = [&](std::size_t begin, std::size_t end) {
      Batch masked = batch;
      for (std::size_t i = begin; i < end; ++i) masked.targets[i] = Objective::kIgnored;
      return engine.evaluate(masked);
    };
    all = engine.evaluate(batch);
    front = without(cut, rows);
    back = without(0, cut);
  });
  EXPECT_NEAR(front / 3 + back * 2 / 3, all, 1e-6);
  EXPECT_GT(std::abs(front - all), 1e-4);
}

}  // namespace
}  // namespace zl::test
