// The promise: losses and final weights of ZeRO 0, 1, 2 and 3 are the same bits, with and without
// overlap, recomputation, prefetch, persistence and reuse.
#include "tests/engine/comparisons.h"

namespace zl::test {
namespace {

class StageEquality : public testing::TestWithParam<TrainingCase> {};

TEST_P(StageEquality, AllStagesGiveTheSameBits) {
  const TrainingCase& c = GetParam();
  const Finished reference = run_cpu(3, c.model, strategy(0, c.dtype), steps(4));
  expect_trained(run_cpu(3, c.model, strategy(0, c.dtype), steps(0)), reference, 0.95, c.name);
  for (const Strategy& s : variants(c.dtype)) {
    const std::string what = s.name + (s.zero.overlap_comm ? " overlap" : "");
    expect_same_bits(reference, run_cpu(3, c.model, s, steps(4)), what);
  }
}

INSTANTIATE_TEST_SUITE_P(
    Models, StageEquality,
    testing::Values(TrainingCase{"gpt2_fp32", tiny_gpt2(), DType::f32},
                    TrainingCase{"llama_fp32", tiny_llama(), DType::f32},
                    TrainingCase{"gpt2_bf16", tiny_gpt2(), DType::bf16},
                    TrainingCase{"llama_bf16", tiny_llama(), DType::bf16},
                    TrainingCase{"qwen3_fp32", tiny_qwen3(), DType::f32},
                    TrainingCase{"gemma_bf16", tiny_gemma(), DType::bf16},
                    TrainingCase{"gpt2_fp16", tiny_gpt2(), DType::f16},
                    TrainingCase{"bert_fp32", tiny_bert(), DType::f32},
                    TrainingCase{"bert_bf16", with_dropout(tiny_bert()), DType::bf16},
                    TrainingCase{"labels_fp32", with_dropout(tiny_labels()), DType::f32},
                    TrainingCase{"labels_fp16", tiny_labels(), DType::f16},
                    TrainingCase{"gpt2_dropout", with_dropout(tiny_gpt2()), DType::f32}),
    [](const auto& each) { return each.param.name; });

// Which way a weight is rounded depends on the seed, the step and the element, not on who owns it.
TEST(StochasticRounding, AllStagesGiveTheSameBits) {
  const auto rounded = [](Strategy s, bool stochastic) {
    s.precision.stochastic_rounding = stochastic;
    s.optimizer.lr = 4e-3;  // the steps stay near each other on every processor
    return run_cpu(3, tiny_gpt2(), s, steps(8));
  };
  const Finished reference = rounded(strategy(0, DType::bf16), true);
  const Finished nearest = rounded(strategy(0, DType::bf16), false);
  EXPECT_NE(reference.result.loss, nearest.result.loss);
  expect_learned(nearest.result.loss, 2.0 / 3);
  for (std::size_t i = 0; i < 8; ++i) {
    EXPECT_NEAR(reference.result.loss[i], nearest.result.loss[i], 0.02 * nearest.result.loss[i]);
  }
  for (const int stage : {1, 2, 3}) {
    expect_same_bits(reference, rounded(strategy(stage, DType::bf16), true),
                     "stage " + std::to_string(stage));
  }
}

// With accumulation stages 2 and 3 add reduced micro-batches where 0 and 1 reduce the sum: the same
// up to rounding, and the same bits within each pair.
TEST(Accumulation, PairsAreEqualAndStagesAgree) {
  std::vector<Finished> runs;
  for (int stage = 0; stage <= 3; ++stage) {
    Strategy s = strategy(stage);
    s.gradient_accumulation = 3;
    s.micro_batch = 1;
    runs.push_back(run_cpu(2, tiny_gpt2(), s, steps(4)));
  }
  expect_learned(runs[0].result.loss, 0.95);
  expect_same_bits(runs[0], runs[1], "0 and 1");
  expect_same_bits(runs[2], runs[3], "2 and 3");
  for (std::size_t i = 0; i < 4; ++i) {
    EXPECT_NEAR(runs[0].result.loss[i], runs[2].result.loss[i], 1e-5 * runs[0].result.loss[i]);
  }
}

// Four ranks with micro-batch 2 train as one rank with micro-batch 8.
TEST(RankCount, AgreesWithOneRank) {
  for (const ModelConfig& model : {with_dropout(tiny_gpt2()), tiny_llama()}) {
    Strategy one = strategy(0);
    one.micro_batch = 8;
    const Finished single = run_cpu(1, model, one, steps(6));
    expect_learned(single.result.loss, 0.8, model.name);
    for (const int stage : {0, 2, 3}) {
      const Finished many = run_cpu(4, model, strategy(stage), steps(6));
      for (std::size_t i = 0; i < 6; ++i) {
        EXPECT_NEAR(many.result.loss[i], single.result.loss[i], 1e-5 * single.result.loss[i])
            << model.name << " stage " << stage << " step " << i + 1;
      }
    }
  }
}

TEST(Optimizers, AllStagesGiveTheSameBits) {
  for (const OptimizerKind kind : {OptimizerKind::adam, OptimizerKind::lamb, OptimizerKind::sgd}) {
    Strategy s = strategy(0);
    s.optimizer.kind = kind;
    s.optimizer.momentum = kind == OptimizerKind::sgd ? 0.9 : 0;
    const Finished reference = run_cpu(3, tiny_gpt2(), s, steps(4));
    expect_trained(run_cpu(3, tiny_gpt2(), s, steps(0)), reference, 0.98,
                   "optimizer " + std::to_string(static_cast<int>(kind)));
    for (int stage = 1; stage <= 3; ++stage) {
      s.zero.stage = stage;
      expect_same_bits(reference, run_cpu(3, tiny_gpt2(), s, steps(4)),
                       "optimizer " + std::to_string(static_cast<int>(kind)) + " stage " +
                           std::to_string(stage));
    }
  }
}

}  // namespace
}  // namespace zl::test
