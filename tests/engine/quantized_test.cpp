// ZeRO++: quantized gathers and reduce-scatters train nearly as full ones, with the recording
// device's books, and the bytes that eight bits promise.
#include "tests/engine/comparisons.h"

namespace zl::test {
namespace {

Strategy quantized(int stage, bool weights, bool gradients) {
  Strategy s = strategy(stage, DType::bf16);
  s.name = "quantized zero-" + std::to_string(stage);
  s.optimizer.lr = 3e-3;
  s.zero.quantized_weights = weights;
  s.zero.quantized_gradients = gradients;
  return s;
}

TEST(Quantized, TrainsNearlyAsInFull) {
  const Finished full = run_cpu(4, tiny_llama(), quantized(3, false, false), steps(30));
  for (const bool weights : {false, true}) {
    const Finished run = run_cpu(4, tiny_llama(), quantized(3, weights, true), steps(30));
    EXPECT_NE(run.result.loss.back(), full.result.loss.back());
    for (std::size_t i = 0; i < 30; ++i) {
      EXPECT_NEAR(run.result.loss[i], full.result.loss[i], 0.01 * full.result.loss[i]) << i;
    }
    expect_falls_alike(run.result.loss, full.result.loss, 0.01);
  }
}

TEST(Quantized, BooksAreEqualAndThereAreNoHazards) {
  for (const int stage : {1, 2, 3}) {
    for (const bool overlap : {false, true}) {
      Strategy s = quantized(stage, stage == 3, true);
      s.zero.overlap_comm = overlap;
      s.gradient_accumulation = 2;
      expect_twins(run_cpu(3, tiny_gpt2(), s, steps(4)).result,
                   run_sim(3, tiny_gpt2(), s, steps(4)).result, s.name);
      ProgramOptions options = steps(3);
      options.keep_trace = options.record_accesses = true;
      const Finished twin = run_sim(3, tiny_gpt2(), s, options);
      EXPECT_TRUE(find_hazards(twin.trace, twin.accesses).empty()) << s.name;
    }
  }
}

// A byte an element and four bytes a block of 256, twice for the weights, once for the gradients.
TEST(Quantized, SendsEightBitsAnElement) {
  const int ranks = 4;
  const Partition partition(ParameterTable(tiny_llama()).counts(), ranks, 0);
  std::int64_t message = 0;
  for (int p = 0; p < static_cast<int>(partition.size()); ++p) {
    message += partition.slot(p).chunk + 4 * ((partition.slot(p).chunk + 255) / 256);
  }
  const RunResult r = run_sim(ranks, tiny_llama(), quantized(3, true, true), steps(5)).result;
  for (const CollectiveTotals& c : r.communication) {
    if (c.group != "data") continue;
    EXPECT_EQ(c.bytes, 5 * (ranks - 1) * message * (c.collective == "all_gather" ? 2 : 1))
        << c.collective;
  }
}

// An overflow on one rank survives the bytes: every rank skips the step.
TEST(Quantized, OverflowsAreSeen) {
  Strategy s = quantized(2, false, true);
  s.precision.compute_dtype = DType::f16;
  s.loss_scaler.initial_scale_power = 30;
  s.loss_scaler.hysteresis = 1;
  const Finished run = run_cpu(3, tiny_gpt2(), s, steps(40));
  EXPECT_GT(run.result.skipped_steps, 3);
  expect_learned(run.result.loss, 2.0 / 3);
}

}  // namespace
}  // namespace zl::test
