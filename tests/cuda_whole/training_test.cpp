// Trainings on the whole CUDA backend: the losses of CPU ranks, the same bits for every ZeRO stage,
// on one shared GPU as on one each, and the books of the recording device.
#include <gtest/gtest.h>

#include <cmath>

#include "tests/cuda_fake/fake.h"
#include "tests/cuda_fake/nccl_clique.h"
#include "tests/engine/comparisons.h"
#include "tests/engine/cuda_runs.h"
#include "tests/engine/traffic.h"

namespace zl::test {
namespace {

// Kernels run in fibers: as little as shows every path.
ModelConfig small_gpt2() { return resized(tiny_gpt2(), {2, 32, 1, 1, 48, 40, 8}); }
ModelConfig small_llama() { return resized(tiny_llama(), {2, 32, 2, 1, 48, 40, 8}); }
// Heads that the tensor-core kernels take.
ModelConfig with_wide_heads(const ModelConfig& model) {
  return resized(model, {2, 64, 1, 1, 48, 40, 8});
}

enum class Gpus { shared, own };
const char* name_of(Gpus gpus) { return gpus == Gpus::shared ? "one GPU" : "a GPU each"; }

Finished run_on(Gpus gpus, int ranks, const ModelConfig& model, const Strategy& strategy,
                const ProgramOptions& options) {
  const cuda::fake::Gpus machine(gpus == Gpus::shared ? 1 : ranks);
  return run_cuda(ranks, model, strategy, options, cuda::fake::run_on_host);
}

// The loss falls by a tenth with the first steps (learnable.h): wrong gradients part from it
// at once.
void expect_losses(const Finished& got, const Finished& want, double tolerance,
                   const std::string& what) {
  expect_learned(want.result.loss, want.result.loss.size() > 2 ? 0.9 : 0.95, what);
  ASSERT_EQ(got.result.loss.size(), want.result.loss.size()) << what;
  for (std::size_t i = 0; i < want.result.loss.size(); ++i) {
    EXPECT_NEAR(got.result.loss[i], want.result.loss[i], tolerance * want.result.loss[i])
        << what << ", step " << i + 1;
  }
}

class WholeBackend : public testing::TestWithParam<TrainingCase> {};

TEST_P(WholeBackend, StagesHaveTheSameBitsTheLossesOfCpuRanksAndTheBooksOfTheSimulator) {
  const TrainingCase& c = GetParam();
  const Strategy zero = strategy(0, c.dtype);
  const Finished on_cpu = run_cpu(4, c.model, zero, steps(2));
  const Finished reference = run_on(Gpus::shared, 4, c.model, zero, steps(2));
  expect_losses(reference, on_cpu, allowed_difference(c.dtype), c.name);
  expect_trained(run_cpu(4, c.model, zero, steps(0)), reference, 0.95, c.name);
  for (const Gpus gpus : {Gpus::shared, Gpus::own}) {
    for (int stage = gpus == Gpus::shared ? 2 : 0; stage <= 3; ++stage) {
      Strategy s = strategy(stage, c.dtype);
      s.zero.overlap_comm = gpus == Gpus::own;
      if (stage % 2 == 1) s.recompute.mode = RecomputeMode::full;
      const std::string what = s.name + ", " + name_of(gpus);
      const Finished real = run_on(gpus, 4, c.model, s, steps(2));
      expect_same_bits(reference, real, what);
      expect_twins(real.result, run_twin(4, c.model, s, steps(2)).result, what);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(
    Models, WholeBackend,
    testing::Values(TrainingCase{"gpt2_fp32", small_gpt2(), DType::f32},
                    TrainingCase{"gpt2_fp16_heads_of_64", with_wide_heads(tiny_gpt2()), DType::f16},
                    TrainingCase{"llama_fp32", small_llama(), DType::f32},
                    TrainingCase{"llama_bf16_heads_of_64", with_wide_heads(tiny_llama()),
                                 DType::bf16},
                    TrainingCase{"gpt2_dropout", with_dropout(small_gpt2()), DType::f32}),
    [](const auto& each) { return each.param.name; });

TEST(WholeWorlds, OneAndTwoRanksHaveTheLossesOfCpuRanks) {
  for (const int ranks : {1, 2}) {
    for (const Gpus gpus : {Gpus::shared, Gpus::own}) {
      if (ranks == 1 && gpus == Gpus::own) continue;
      Strategy s = strategy(2, DType::bf16);
      s.gradient_accumulation = 2;
      s.zero.overlap_comm = true;
      const std::string what = std::to_string(ranks) + " ranks, " + name_of(gpus);
      const Finished real = run_on(gpus, ranks, small_llama(), s, steps(2));
      expect_losses(real, run_cpu(ranks, small_llama(), s, steps(2)), 2e-2, what);
      expect_twins(real.result, run_twin(ranks, small_llama(), s, steps(2)).result, what);
    }
  }
}

TEST(WholeRepeat, TheSameRunGivesTheSameBits) {
  Strategy s = strategy(3, DType::bf16);
  s.zero.overlap_comm = true;
  const ModelConfig model = with_dropout(with_wide_heads(tiny_gpt2()));
  expect_same_bits(run_on(Gpus::own, 2, model, s, steps(3)),
                   run_on(Gpus::own, 2, model, s, steps(3)), "once more");
}

// The fused epilogues of the fastest mode: other bits, the same losses.
TEST(WholeFastest, HasTheLossesOfTheDeterministicMode) {
  Strategy s = strategy(1, DType::bf16);
  const Finished exact = run_on(Gpus::shared, 2, small_gpt2(), s, steps(3));
  const cuda::fake::Gpus machine(1);
  WorldOptions fastest{2, 1};
  fastest.deterministic = false;
  const Finished fused =
      run(*cuda::make_world(fastest, cuda::fake::run_on_host), small_gpt2(), s, steps(3));
  expect_losses(fused, exact, 2e-2, "fused");
  EXPECT_NE(fused.result.grad_norm, exact.result.grad_norm) << "nothing was fused";
}

// Tiers: what is on the host or in files gives the bits of the run on the device.
class WholeOffload : public testing::TestWithParam<int> {};

std::vector<Strategy> chosen_offloads() {
  std::vector<Strategy> all = offload_variants(DType::bf16), chosen;
  for (std::size_t i = 0; i < all.size(); i += 3) chosen.push_back(all[i]);
  return chosen;
}

TEST_P(WholeOffload, GivesTheBitsOfTheRunOnTheDeviceAndTheBooksOfTheSimulator) {
  const Strategy s = chosen_offloads()[static_cast<std::size_t>(GetParam())];
  const Gpus gpus = GetParam() % 2 == 0 ? Gpus::shared : Gpus::own;
  const std::string what = s.name + ", " + name_of(gpus);
  static const Finished reference =
      run_on(Gpus::shared, 2, small_gpt2(), strategy(0, DType::bf16), steps(2));
  const Finished real = run_on(gpus, 2, small_gpt2(), s, steps(2));
  expect_same_bits(reference, real, what);
  expect_twins(real.result, run_twin(2, small_gpt2(), s, steps(2)).result, what);
}

INSTANTIATE_TEST_SUITE_P(Strategies, WholeOffload,
                         testing::Range(0, static_cast<int>(chosen_offloads().size())));

// The calls that reach NCCL move the bytes of the books.
TEST(WholeTraffic, NcclIsGivenTheBytesOfTheBooks) {
  constexpr int kRanks = 3;
  const ModelConfig model = small_llama();
  const TokenSource data = learnable_tokens(model.vocab);
  ProgramOptions options = steps(3);
  options.sequence_length = model.max_sequence;
  options.keep_trace = true;
  for (const Strategy& s : strategies_that_send()) {
    const cuda::fake::Gpus machine(kRanks);
    const std::int64_t before = cuda::fake::exchanged_bytes();
    RankOutcome of_rank_0;
    std::mutex mutex;
    cuda::make_world({kRanks, 1}, cuda::fake::run_on_host)->run([&](RankHandle handle) {
      RankOutcome outcome = run_rank(handle, model, s, data, options);
      const std::lock_guard lock(mutex);
      if (handle.communicator.rank() == 0) of_rank_0 = std::move(outcome);
    });
    const TrafficSum books = booked(of_rank_0.result, kRanks), needed = least(of_rank_0.trace);
    EXPECT_EQ(needed.data, books.data) << s.name;
    EXPECT_EQ(cuda::fake::exchanged_bytes() - before, books.data + needed.control) << s.name;
  }
}

TEST(WholeCompressed, OneBitAdamAndZeroPlusPlusHaveTheLossesOfCpuRanks) {
  Strategy onebit = strategy(1, DType::bf16);
  onebit.name = "1-bit Adam";
  onebit.optimizer.kind = OptimizerKind::onebit_adam;
  onebit.optimizer.lr = 3e-3;
  onebit.optimizer.onebit.freeze_step = 2;
  Strategy quantized = strategy(3, DType::bf16);
  quantized.name = "ZeRO++";
  quantized.zero.quantized_weights = quantized.zero.quantized_gradients = true;
  quantized.zero.overlap_comm = true;
  for (const Strategy& s : {onebit, quantized}) {
    const Finished on_cpu = run_cpu(4, small_gpt2(), s, steps(4));
    const Finished reference = run_on(Gpus::shared, 4, small_gpt2(), s, steps(4));
    // The sign that stands for a momentum near 0 depends on its rounding.
    expect_losses(reference, on_cpu, is_onebit(s.optimizer.kind) ? 4e-2 : 2e-2, s.name);
    const Finished real = run_on(Gpus::own, 4, small_gpt2(), s, steps(4));
    expect_same_bits(reference, real, s.name);
    expect_twins(real.result, run_twin(4, small_gpt2(), s, steps(4)).result, s.name);
  }
}

}  // namespace
}  // namespace zl::test
