// Training on the GPU: ZeRO 0-3 on ranks that share one card, with and without offload, give the
// same bits, the same losses as the CPU, and the books that the simulator predicts.
#include <algorithm>
#include <cmath>

#include "core/ops/op.h"
#include "tests/engine/comparisons.h"
#include "tests/engine/cuda_runs.h"
#include "tests/gpu/gtest_figures.h"

namespace zl::test {
namespace {

constexpr int kRanks = 4;
constexpr std::int64_t kSteps = 6;  // with four ranks' batches the loss has not fallen after four

// Wide enough for the tiled attention kernels and tensor cores: head size 64.
ModelConfig wider(ModelConfig model) {
  model.name += " with heads of 64";
  const std::int64_t kv_heads = model.family == "llama" ? 1 : 2;
  return resized(std::move(model), {3, 128, 2, kv_heads, 320, 250, 96});
}

class GpuStageEquality : public testing::TestWithParam<TrainingCase> {};

TEST_P(GpuStageEquality, AllStagesGiveTheSameBits) {
  const TrainingCase& c = GetParam();
  const Finished reference = run_cuda(kRanks, c.model, strategy(0, c.dtype), steps(kSteps));
  expect_trained(run_cuda(kRanks, c.model, strategy(0, c.dtype), steps(0)), reference, 0.95,
                 c.name);
  std::vector<Strategy> all = variants(c.dtype);
  if (gpu::is_tiny()) all.resize(3);
  for (const Strategy& s : all) {
    const std::string what = s.name + (s.zero.overlap_comm ? " overlap" : "");
    expect_same_bits(reference, run_cuda(kRanks, c.model, s, steps(kSteps)), what);
  }
}

INSTANTIATE_TEST_SUITE_P(
    Models, GpuStageEquality,
    testing::Values(TrainingCase{"gpt2_fp32", tiny_gpt2(), DType::f32},
                    TrainingCase{"llama_fp32", tiny_llama(), DType::f32},
                    TrainingCase{"gpt2_bf16", wider(tiny_gpt2()), DType::bf16},
                    TrainingCase{"llama_bf16", wider(tiny_llama()), DType::bf16},
                    TrainingCase{"gpt2_fp16", wider(tiny_gpt2()), DType::f16},
                    TrainingCase{"gpt2_dropout", with_dropout(tiny_gpt2()), DType::f32}),
    [](const auto& each) { return each.param.name; });

TEST(GpuOptimizers, AllStagesGiveTheSameBits) {
  for (const OptimizerKind kind : {OptimizerKind::adam, OptimizerKind::lamb, OptimizerKind::sgd}) {
    Strategy s = strategy(0);
    s.optimizer.kind = kind;
    s.optimizer.momentum = kind == OptimizerKind::sgd ? 0.9 : 0;
    const Finished reference = run_cuda(kRanks, tiny_gpt2(), s, steps(4));
    for (int stage = 1; stage <= 3; ++stage) {
      s.zero.stage = stage;
      expect_same_bits(reference, run_cuda(kRanks, tiny_gpt2(), s, steps(4)),
                       "optimizer " + std::to_string(static_cast<int>(kind)) + " stage " +
                           std::to_string(stage));
    }
  }
}

// 50 steps, from the same weights and data: relative difference of the loss at its worst step.
class GpuAgainstCpu : public testing::TestWithParam<TrainingCase> {};

TEST_P(GpuAgainstCpu, LossesAgreeOver50Steps) {
  const TrainingCase& c = GetParam();
  Strategy s = strategy(2, c.dtype);
  s.optimizer.lr = 5e-4;
  const std::size_t count = gpu::is_tiny() ? 4 : 50;
  const ProgramOptions options = steps(static_cast<std::int64_t>(count));
  const Finished on_cpu = run_cpu(2, c.model, s, options);
  const Finished on_gpu = run_cuda(2, c.model, s, options);
  ASSERT_EQ(on_cpu.result.loss.size(), count);
  ASSERT_EQ(on_gpu.result.loss.size(), count);
  expect_learned(on_cpu.result.loss, gpu::is_tiny() ? 0.9 : 0.5, c.name);
  double worst = 0;
  for (std::size_t i = 0; i < count; ++i) {
    ASSERT_TRUE(std::isfinite(on_gpu.result.loss[i])) << "step " << i + 1;
    worst = std::max(worst, std::abs(on_gpu.result.loss[i] / on_cpu.result.loss[i] - 1));
  }
  const double allowed = allowed_difference(c.dtype);
  gpu::figures()["loss_difference"][c.name] = {{"largest", worst}, {"allowed", allowed}};
  EXPECT_LE(worst, allowed);
}

INSTANTIATE_TEST_SUITE_P(
    Models, GpuAgainstCpu,
    testing::Values(TrainingCase{"gpt2_fp32", wider(tiny_gpt2()), DType::f32},
                    TrainingCase{"llama_fp32", wider(tiny_llama()), DType::f32},
                    TrainingCase{"gpt2_bf16", wider(tiny_gpt2()), DType::bf16},
                    TrainingCase{"llama_bf16", wider(tiny_llama()), DType::bf16}),
    [](const auto& each) { return each.param.name; });

TEST(GpuTwin, BooksAreEqualForEveryStageAndFamily) {
  for (const ModelConfig& model : {tiny_gpt2(), wider(tiny_llama())}) {
    for (const DType dtype : {DType::f32, DType::bf16}) {
      for (const Strategy& s : variants(dtype)) {
        const Finished real = run_cuda(kRanks, model, s, steps(3));
        const Finished twin = run_twin(kRanks, model, s, steps(3));
        expect_twins(real.result, twin.result,
                     model.name + " " + s.name + (s.zero.overlap_comm ? " overlap" : ""));
      }
    }
  }
}

// Memory tiers: gradients, optimizer state, weights and activations on the host and in files.
TEST(GpuOffload, GivesTheBitsOfTheRunOnTheDeviceAndTheBooksOfTheSimulator) {
  for (const ModelConfig& model : {tiny_gpt2(), wider(tiny_llama())}) {
    const DType dtype = model.family == "llama" ? DType::bf16 : DType::f32;
    const Finished reference = run_cuda(kRanks, model, strategy(0, dtype), steps(4));
    for (const Strategy& s : offload_variants(dtype)) {
      const std::string what = model.name + " " + s.name + (s.zero.overlap_comm ? " overlap" : "");
      const Finished real = run_cuda(kRanks, model, s, steps(4));
      expect_same_bits(reference, real, what);
      expect_twins(real.result, run_twin(kRanks, model, s, steps(4)).result, what);
    }
  }
}

TEST(GpuRepeat, TheSameRunGivesTheSameBits) {
  for (const DType dtype : {DType::f32, DType::bf16}) {
    Strategy s = strategy(3, dtype);
    s.zero.overlap_comm = true;
    const ModelConfig model = with_dropout(wider(tiny_llama()));
    expect_same_bits(run_cuda(kRanks, model, s, steps(6)), run_cuda(kRanks, model, s, steps(6)),
                     name_of(dtype));
  }
}

}  // namespace
}  // namespace zl::test
