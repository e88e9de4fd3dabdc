// Encoders under every strategy: what the families' tests do not say of them.
#include "tests/engine/comparisons.h"

namespace zl::test {
namespace {

TEST(Encoder, OffloadGivesTheSameBits) {
  for (const ModelConfig& model : {with_dropout(tiny_bert()), with_dropout(tiny_labels())}) {
    const Finished reference = run_cpu(2, model, strategy(0), steps(3));
    for (const Strategy& s : offload_variants(DType::f32)) {
      if (s.zero.overlap_comm) continue;
      expect_same_bits(reference, run_cpu(2, model, s, steps(3)), model.name + " " + s.name);
    }
  }
}

// With dropout where no micro-batch is cut: that is keyed by it.
TEST(Encoder, FourRanksTrainAsOne) {
  const auto compare = [](const ModelConfig& model, std::int64_t accumulation) {
    Strategy one = strategy(0);
    one.micro_batch = 8;
    const Finished single = run_cpu(1, model, one, steps(6));
    Strategy parts = strategy(3);
    parts.micro_batch = 2 / accumulation;
    parts.gradient_accumulation = accumulation;
    const Finished many = run_cpu(4, model, parts, steps(6));
    for (std::size_t i = 0; i < 6; ++i) {
      EXPECT_NEAR(many.result.loss[i], single.result.loss[i], 1e-5 * single.result.loss[i])
          << model.name << " step " << i + 1;
    }
  };
  for (const ModelConfig& model : {tiny_bert(), tiny_labels()}) {
    compare(with_dropout(model), 1);
    compare(model, 2);
  }
}

TEST(Encoder, LearnsWhatItsTextsTell) {
  Strategy s = strategy(2);
  s.micro_batch = 8;
  s.optimizer.lr = 3e-3;
  s.optimizer.weight_decay = 0;
  const Finished trained = run_cpu(2, tiny_labels(), s, steps(60));
  EXPECT_LT(trained.result.loss.back(), 0.3);
}

// Masked tokens of unequal texts: the mean of a step is over all of them.
TEST(Encoder, MaskedTokensCountAlikeForEverySplit) {
  const ModelConfig model = tiny_bert();
  const auto texts = learnable_texts(model.vocab, 2);
  const MaskSource data(texts, {.mask = 60, .special = {0}, .vocab = 60}, 3);
  const auto losses = [&](int ranks, std::int64_t micro_batch, std::int64_t accumulation) {
    Strategy s = strategy(3);
    s.micro_batch = micro_batch;
    s.gradient_accumulation = accumulation;
    std::vector<double> all;
    cpu::make_world({ranks, 1})->run([&](RankHandle handle) {
      ProgramOptions options = steps(6);
      options.sequence_length = model.positions();
      const RankOutcome outcome = run_rank(handle, model, s, data, options);
      if (handle.communicator.rank() == 0) all = outcome.result.loss;
    });
    return all;
  };
  const std::vector<double> whole = losses(1, 8, 1), split = losses(4, 1, 2);
  ASSERT_EQ(whole.size(), split.size());
  for (std::size_t i = 0; i < whole.size(); ++i) EXPECT_NEAR(split[i], whole[i], 2e-5);
  EXPECT_LT(whole.back(), whole.front());
}

TEST(Encoder, TellsTheSameLabelsUnderEveryStage) {
  const ModelConfig model = tiny_labels();
  const auto texts = learnable_texts(model.vocab, model.labels);
  const LabelSource data(texts, model.labels, 7);
  std::vector<std::vector<std::vector<float>>> told;
  for (int stage = 0; stage <= 3; ++stage) {
    std::vector<std::vector<float>> all;
    std::vector<double> sums;
    cpu::make_world({2, 1})->run([&](RankHandle handle) {
      ProgramOptions options = steps(3);
      options.sequence_length = 24;
      options.at_end = [&](Engine& engine) {
        const auto logits = engine.label_logits(data.in_order(0, 2, 24));
        const double loss = engine.evaluate(data.in_order(0, 2, 24)).mean();
        const auto summed = engine.summed({1, loss});
        if (engine.context().rank() != 0) return;
        all = logits;
        sums = summed;
        double own = 0;
        for (std::size_t row = 0; row < 2; ++row) {
          double sum = 0;
          for (const float logit : logits[row]) sum += std::exp(static_cast<double>(logit));
          const auto label = static_cast<std::size_t>((*texts)[static_cast<int>(row)].label);
          own += std::log(sum) - static_cast<double>(logits[row][label]);
        }
        EXPECT_NEAR(own / 2, loss, 1e-5);
      };
      run_rank(handle, model, strategy(stage), data, options);
    });
    ASSERT_EQ(all.size(), 2u);
    ASSERT_EQ(sums.size(), 2u);
    EXPECT_EQ(sums[0], 2);
    told.push_back(all);
  }
  for (int stage = 1; stage <= 3; ++stage)
    EXPECT_EQ(told[static_cast<std::size_t>(stage)], told[0]);
}

TEST(Encoder, IsWholeOnEveryRank) {
  const auto refusal = [](const Strategy& s, int ranks) -> std::string {
    try {
      run_cpu(ranks, tiny_bert(), s, steps(1));
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::invalid);
      return error.what();
    }
    return "";
  };
  Strategy tensor = strategy(0);
  tensor.tensor.ranks = 2;
  EXPECT_NE(refusal(tensor, 2).find("parallel.tensor: an encoder"), std::string::npos);
  Strategy pipeline = strategy(0);
  pipeline.pipeline.ranks = 2;
  pipeline.gradient_accumulation = 2;
  EXPECT_NE(refusal(pipeline, 2).find("parallel.pipeline: an encoder"), std::string::npos);
}

}  // namespace
}  // namespace zl::test
