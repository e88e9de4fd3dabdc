// One-bit optimizers in the engine: ZeRO stages agree, the recording device's books are the real
// run's, warm-up is Adam, and steps that overflow are skipped by all ranks.
#include "core/ops/compress.h"
#include "tests/engine/comparisons.h"

namespace zl::test {
namespace {

Strategy onebit(int stage, DType dtype, std::int64_t freeze_step) {
  Strategy s = strategy(stage, dtype);
  s.name = "onebit zero-" + std::to_string(stage);
  s.optimizer.kind = OptimizerKind::onebit_adam;
  s.optimizer.lr = 3e-3;
  s.optimizer.onebit.freeze_step = freeze_step;
  return s;
}

TEST(OnebitAdamRuns, StageOneGivesTheBitsOfStageZero) {
  for (const DType dtype : {DType::f32, DType::bf16, DType::f16}) {
    for (const std::int64_t accumulation : {1, 3}) {
      Strategy zero = onebit(0, dtype, 3), one = onebit(1, dtype, 3);
      zero.gradient_accumulation = one.gradient_accumulation = accumulation;
      const Finished reference = run_cpu(3, tiny_gpt2(), zero, steps(8));
      for (const bool overlap : {false, true}) {
        one.zero.overlap_comm = overlap;
        expect_same_bits(reference, run_cpu(3, tiny_gpt2(), one, steps(8)), name_of(dtype));
      }
    }
  }
}

TEST(OnebitAdamRuns, WarmUpIsAdamAndCompressionIsNot) {
  Strategy adam = strategy(0);
  adam.optimizer.lr = 3e-3;
  const Finished exact = run_cpu(4, tiny_gpt2(), adam, steps(12));
  const Finished compressed = run_cpu(4, tiny_gpt2(), onebit(0, DType::f32, 5), steps(12));
  for (std::size_t i = 0; i < 12; ++i) {
    // The loss of a step is of the weights before it.
    if (i < 6) {
      EXPECT_EQ(compressed.result.loss[i], exact.result.loss[i]) << i;
    } else {
      EXPECT_NE(compressed.result.loss[i], exact.result.loss[i]) << i;
    }
  }
}

// Four ranks that send signs from step 5 on, beside four that send gradients.
TEST(OnebitAdamRuns, CompressionTrainsNearlyAsAdam) {
  Strategy adam = strategy(0);
  adam.optimizer.lr = 3e-3;
  const Finished exact = run_cpu(4, tiny_gpt2(), adam, steps(32));
  for (const int stage : {0, 1}) {
    const Finished run = run_cpu(4, tiny_gpt2(), onebit(stage, DType::f32, 5), steps(32));
    expect_falls_alike(run.result.loss, exact.result.loss, 0.1, run.result.strategy);
  }
}

// Nothing to compress: only the second moment stands still.
TEST(OnebitAdamRuns, OneRankStaysCloseToAdam) {
  Strategy adam = strategy(0);
  adam.optimizer.lr = 3e-3;
  const Finished exact = run_cpu(1, tiny_gpt2(), adam, steps(40));
  const Finished run = run_cpu(1, tiny_gpt2(), onebit(0, DType::f32, 20), steps(40));
  expect_falls_alike(run.result.loss, exact.result.loss, 0.05);
  EXPECT_TRUE(run.result.communication.empty() || run.result.communication[0].bytes == 0);
}

TEST(OnebitAdamRuns, BooksAreEqualOnTheRecordingDevice) {
  for (const ModelConfig& model : {tiny_gpt2(), tiny_llama()}) {
    for (const int stage : {0, 1}) {
      for (const bool automatic : {false, true}) {
        Strategy s = onebit(stage, DType::bf16, 9);
        s.zero.overlap_comm = stage == 1;
        s.optimizer.onebit.automatic_freeze = automatic;
        s.optimizer.onebit.variance_stability = 1;  // never, as the recording device has it
        s.optimizer.beta2 = 0.75;                   // a check every 4 steps
        ProgramOptions recorded = steps(23);
        recorded.recorded_steps = kSteadySteps;
        const Finished real = run_cpu(3, model, s, steps(23)),
                       twin = run_sim(3, model, s, recorded);
        expect_twins(real.result, twin.result, model.name + " " + s.name);
        EXPECT_LT(twin.trace.op_count(), real.result.op_count);
      }
    }
  }
}

TEST(OnebitAdamRuns, IsNotUpdatedOnTheHost) {
  Strategy s = onebit(1, DType::bf16, 2);
  s.offload.optimizer = Tier::cpu;
  try {
    run_sim(2, tiny_gpt2(), s, steps(3));
    FAIL() << "it ran";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("one-bit optimizers are not updated on the host"),
              std::string::npos)
        << error.what();
  }
}

TEST(OnebitAdamRuns, NoHazards) {
  Strategy s = onebit(1, DType::bf16, 2);
  s.zero.overlap_comm = true;
  ProgramOptions options = steps(5);
  options.keep_trace = options.record_accesses = true;
  const Finished twin = run_sim(4, tiny_gpt2(), s, options);
  EXPECT_TRUE(find_hazards(twin.trace, twin.accesses).empty());
}

// A loss scale of 2^30 overflows gradients until it has come down: nobody moves or compresses, and
// what comes after trains.
TEST(OnebitAdamRuns, OverflowsAreSkippedAfterTheFreezeToo) {
  Strategy s = onebit(0, DType::f16, 2);
  s.loss_scaler.initial_scale_power = 30;  // overflows until it has come down
  s.loss_scaler.hysteresis = 1;
  const Finished run = run_cpu(3, tiny_gpt2(), s, steps(40));
  EXPECT_GT(run.result.skipped_steps, 3);
  expect_learned(run.result.loss, 0.75);
}

// After the freeze the norm is of local gradients, the root of their mean square: not below that of
// the average, and clipping holds it.
TEST(OnebitAdamRuns, NormAfterTheFreezeIsOfLocalGradients) {
  Strategy adam = strategy(0);
  adam.gradient_clipping = 0;
  Strategy s = onebit(0, DType::f32, 1);
  s.gradient_clipping = 0;
  s.optimizer.lr = adam.optimizer.lr = 1e-12;  // both stay where they are
  const Finished exact = run_cpu(4, tiny_gpt2(), adam, steps(4));
  const Finished local = run_cpu(4, tiny_gpt2(), s, steps(4));
  EXPECT_EQ(local.result.grad_norm[0], exact.result.grad_norm[0]);
  for (std::size_t i = 1; i < 4; ++i) {
    EXPECT_GT(local.result.grad_norm[i], exact.result.grad_norm[i]);
    EXPECT_LT(local.result.grad_norm[i], 4 * exact.result.grad_norm[i]);  // 2 where uncorrelated
  }
}

// Stage 0, data group: all-reduces while warming up, a sixteenth (of 16 bits) after.
TEST(OnebitAdamRuns, TrafficFollowsTheClosedForm) {
  const int ranks = 4;
  const Partition partition(ParameterTable(tiny_gpt2()).counts(), ranks, 0);
  std::int64_t message = 0;
  for (int p = 0; p < static_cast<int>(partition.size()); ++p) {
    message += packed_bytes(partition.slot(p).chunk);
  }
  ProgramOptions recorded = steps(100);
  recorded.recorded_steps = kSteadySteps;
  const RunResult r = run_sim(ranks, tiny_gpt2(), onebit(0, DType::f32, 15), recorded).result;
  std::map<std::string, std::int64_t> bytes;
  for (const CollectiveTotals& c : r.communication) {
    if (c.group == "data") bytes[c.collective] += c.bytes;
  }
  EXPECT_EQ(bytes["all_reduce"], 15 * 2 * (ranks - 1) * partition.shard_elements() * 4);
  EXPECT_EQ(bytes["all_to_all"], 85 * (ranks - 1) * message);
  EXPECT_EQ(bytes["all_gather"], 85 * (ranks - 1) * message);
}

// Per rank: stage 0 has both moments and the worker error whole, stage 1 the first moment and the
// error; chunks of the server error, and in stage 1 of the warm-up's first moment, the second and
// the masters.
TEST(OnebitAdamRuns, OptimizerMemoryFollowsTheClosedForm) {
  const int ranks = 4;
  const std::int64_t psi =
      Partition(ParameterTable(tiny_gpt2()).counts(), ranks, 0).full_elements();
  for (const DType dtype : {DType::f32, DType::bf16}) {
    const std::int64_t masters = dtype == DType::f32 ? 0 : 4;
    const auto held = [&](int stage) {
      const RunResult r = run_sim(ranks, tiny_gpt2(), onebit(stage, dtype, 9), steps(2)).result;
      return r.peak_device.tag[static_cast<std::size_t>(MemoryTag::optimizer)];
    };
    EXPECT_EQ(held(0), (4 + 4 + 4 + masters) * psi + 4 * psi / ranks);
    EXPECT_EQ(held(1), (4 + 4) * psi + (4 + 4 + 4 + masters) * psi / ranks);
  }
}

Strategy zero_one(DType dtype) {
  Strategy s = onebit(0, dtype, 0);
  s.name = "zero-one";
  s.optimizer.kind = OptimizerKind::zero_one_adam;
  s.optimizer.onebit.var_freeze_step = 11;
  s.optimizer.onebit.var_update_scaler = 2;
  s.optimizer.onebit.local_step_scaler = 4;
  s.optimizer.onebit.local_step_clipper = 4;
  return s;
}

TEST(ZeroOneAdamRuns, BooksAreEqualOnTheRecordingDevice) {
  for (const DType dtype : {DType::f32, DType::bf16}) {
    ProgramOptions recorded = steps(60);
    recorded.recorded_steps = 2;
    const Finished real = run_cpu(3, tiny_gpt2(), zero_one(dtype), steps(60));
    const Finished twin = run_sim(3, tiny_gpt2(), zero_one(dtype), recorded);
    RunResult expected = real.result;
    expect_twins(expected, twin.result, name_of(dtype));
    EXPECT_LT(twin.trace.op_count(), real.result.op_count);
  }
}

// By hand: variance at steps 1, 2 (interval 1), 4, 6 (interval 2), 8 (interval 4), the others up to
// 11 one bit; then exchanges at 12..15 (interval 1), 16, 18 (2), 20, 24, 28, ... (4).
TEST(ZeroOneAdamRuns, ExchangesFollowTheIntervals) {
  const int ranks = 4;
  const RunResult r = run_sim(ranks, tiny_gpt2(), zero_one(DType::f32), steps(32)).result;
  std::map<std::string, std::int64_t> counts;
  for (const CollectiveTotals& c : r.communication) {
    if (c.group == "data") counts[c.collective] = c.count;
  }
  EXPECT_EQ(counts["all_to_all"], 6 + 4 + 2 + 4);
  EXPECT_EQ(counts["all_gather"], counts["all_to_all"]);
  Strategy adam = strategy(0);
  const RunResult all = run_sim(ranks, tiny_gpt2(), adam, steps(5)).result;
  ASSERT_EQ(all.communication.front().collective + all.communication.front().group,
            "all_reducedata");
  EXPECT_EQ(counts["all_reduce"], all.communication.front().count);  // five steps' worth
}

// 0/1 Adam has no bias correction.
TEST(ZeroOneAdamRuns, StaysCloseToAdamAndRanksAgree) {
  Strategy adam = strategy(0);
  adam.optimizer.bias_correction = false;
  adam.optimizer.lr = 5e-4;
  Strategy s = zero_one(DType::f32);
  s.optimizer.lr = 5e-4;
  const Finished exact = run_cpu(4, tiny_gpt2(), adam, steps(32));
  const Finished run = run_cpu(4, tiny_gpt2(), s, steps(32));
  expect_falls_alike(run.result.loss, exact.result.loss, 0.15);
  // The common weights, bit for bit, on every rank.
  std::mutex mutex;
  std::vector<float> first;
  ProgramOptions options = steps(32);
  options.at_end = [&](Engine& engine) {
    const std::vector<float> mine = engine.gather_parameter(2);
    const std::lock_guard lock(mutex);
    if (first.empty()) first = mine;
    EXPECT_EQ(first, mine);
  };
  options.sequence_length = tiny_gpt2().max_sequence;
  const TokenSource data = learnable_tokens(tiny_gpt2().vocab);
  cpu::make_world({4, 1})->run(
      [&](RankHandle handle) { run_rank(handle, tiny_gpt2(), s, data, options); });
  EXPECT_FALSE(first.empty());
}

Strategy onebit_lamb(DType dtype, std::int64_t freeze_step) {
  Strategy s = onebit(0, dtype, freeze_step);
  s.name = "onebit-lamb";
  s.optimizer.kind = OptimizerKind::onebit_lamb;
  s.optimizer.bias_correction = false;
  return s;
}

TEST(OnebitLambRuns, BooksAreEqualOnTheRecordingDevice) {
  for (const DType dtype : {DType::f32, DType::bf16}) {
    ProgramOptions recorded = steps(20);
    recorded.recorded_steps = kSteadySteps;
    const Finished real = run_cpu(3, tiny_gpt2(), onebit_lamb(dtype, 7), steps(20));
    expect_twins(real.result, run_sim(3, tiny_gpt2(), onebit_lamb(dtype, 7), recorded).result,
                 name_of(dtype));
  }
}

TEST(OnebitLambRuns, WarmUpIsLambAndCompressionStaysClose) {
  Strategy lamb = strategy(0);
  lamb.optimizer.kind = OptimizerKind::lamb;
  lamb.optimizer.bias_correction = false;
  lamb.optimizer.lr = 1e-2;
  Strategy s = onebit_lamb(DType::f32, 10);
  s.optimizer.lr = 1e-2;
  const Finished exact = run_cpu(4, tiny_gpt2(), lamb, steps(36));
  const Finished run = run_cpu(4, tiny_gpt2(), s, steps(36));
  for (std::size_t i = 0; i < 11; ++i) {
    EXPECT_EQ(run.result.loss[i], exact.result.loss[i]) << i;
  }
  expect_falls_alike(run.result.loss, exact.result.loss, 0.15);
  EXPECT_NE(run.result.loss.back(), exact.result.loss.back());
}

}  // namespace
}  // namespace zl::test
