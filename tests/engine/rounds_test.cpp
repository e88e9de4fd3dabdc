// Recordings hold micro-batches that are alike once: the books, to the byte and the op, are those
// of the run that takes them all.
#include <malloc.h>

#include <atomic>
#include <set>
#include <utility>

#include "tests/engine/checkpoints.h"
#include "tests/engine/comparisons.h"

namespace zl::test {
namespace {

ProgramOptions recorded(std::int64_t count) {
  ProgramOptions options = steps(count);
  options.recorded_steps = kSteadySteps;
  options.recorded_rounds = kSteadyRounds;
  return options;
}

class Rounds : public testing::TestWithParam<std::int64_t> {};

TEST_P(Rounds, TheBooksAreThoseOfAllMicroBatches) {
  for (const DType dtype : {DType::f32, DType::bf16}) {
    for (Strategy s : variants(dtype)) {
      s.gradient_accumulation = GetParam();
      s.micro_batch = 1;
      const std::string what = s.name + ", accumulation " + std::to_string(GetParam());
      expect_twins(run_cpu(2, tiny_gpt2(), s, steps(3)).result,
                   run_sim(2, tiny_gpt2(), s, recorded(3)).result, what);
    }
  }
}

TEST_P(Rounds, TheBooksAreThoseOfAllMicroBatchesOffTheDevice) {
  for (Strategy s : offload_variants(DType::bf16)) {
    s.gradient_accumulation = GetParam();
    s.micro_batch = 1;
    const std::string what = s.name + ", accumulation " + std::to_string(GetParam());
    expect_twins(run_sim(3, tiny_llama(), s, steps(3)).result,
                 run_sim(3, tiny_llama(), s, recorded(3)).result, what);
  }
}

INSTANTIATE_TEST_SUITE_P(Accumulation, Rounds, testing::Values(1, 2, 5, 6, 7, 12));

TEST(Rounds, AMillionMicroBatchesAreRecordedLikeAFew) {
  for (int stage = 0; stage <= 3; ++stage) {
    Strategy s = strategy(stage, DType::bf16);
    const auto run_with = [&s](std::int64_t accumulation) {
      s.gradient_accumulation = accumulation;
      return run_sim(4, tiny_gpt2(), s, recorded(2));
    };
    const Finished few = run_with(10), more = run_with(11), all = run_with(1'000'000);
    EXPECT_EQ(all.trace.events().size(), few.trace.events().size()) << s.name;
    EXPECT_EQ(all.result.peak_device, few.result.peak_device) << s.name;
    EXPECT_GT(more.result.op_count, few.result.op_count);
    EXPECT_EQ(all.result.op_count,
              few.result.op_count + 999'990 * (more.result.op_count - few.result.op_count))
        << s.name;
    EXPECT_EQ(all.result.wire_bytes_per_step,
              few.result.wire_bytes_per_step +
                  999'990 * (more.result.wire_bytes_per_step - few.result.wire_bytes_per_step))
        << s.name;
  }
}

TEST(Rounds, ManyBuffersOfWeightsInFilesAreNoLongRecording) {
  Strategy s = strategy(3, DType::bf16);
  s.offload.optimizer = Tier::cpu;
  s.offload.parameters = Tier::nvme;
  s.offload.max_in_cpu = 0;
  s.offload.parameter_buffer_count = 1'000'000;
  EXPECT_LE(steady_rounds(s), 64);
  s.offload.parameter_buffer_count = 9;
  EXPECT_GE(steady_rounds(s), 11);
}

ProgramOptions holding(int rounds, std::int64_t count) {
  ProgramOptions options = steps(count);
  options.keep_trace = true;
  options.held_rounds = rounds;
  return options;
}

std::size_t blocks_left(const Trace& trace) {
  std::set<std::pair<MemorySpace, std::int64_t>> live;
  for (const TraceEvent& event : trace.events()) {
    if (event.type == EventType::allocate) {
      EXPECT_TRUE(live.emplace(event.space, event.id).second);
    }
    if (event.type == EventType::free) {
      EXPECT_EQ(live.erase({event.space, event.id}), 1u);
    }
  }
  return live.size();
}

// What is executed is held like what is recorded: 2 micro-batches of a step and the last.
TEST(HeldRounds, MoreMicroBatchesAreNotMoreEventsOfAnExecutedRun) {
  std::vector<Strategy> all;
  for (Strategy& s : variants(DType::bf16)) {
    const bool recomputes = s.recompute.mode != RecomputeMode::none;
    if (s.zero.overlap_comm && recomputes == (s.zero.stage == 1)) all.push_back(std::move(s));
  }
  for (Strategy& s : offload_variants(DType::bf16)) {
    if (s.zero.overlap_comm && s.zero.stage == 3 && s.offload.ratio == 1) {
      all.push_back(std::move(s));
    }
  }
  for (Strategy s : all) {
    s.micro_batch = 1;
    const auto run_with = [&s](std::int64_t accumulation, int held) {
      s.gradient_accumulation = accumulation;
      return run_cpu(2, tiny_gpt2(), s, holding(held, 1));
    };
    const Finished few = run_with(8, 2), many = run_with(64, 2), whole = run_with(64, 0);
    EXPECT_LE(many.trace.events().size(), few.trace.events().size()) << s.name;
    EXPECT_LT(4 * many.trace.events().size(), whole.trace.events().size()) << s.name;
    EXPECT_EQ(many.trace.op_count(), whole.trace.op_count()) << s.name;
    EXPECT_EQ(blocks_left(many.trace), blocks_left(whole.trace)) << s.name;
    expect_twins(many.result, whole.result, s.name);
    expect_same_bits(many, whole, s.name);
  }
}

TEST(HeldRounds, TheirEventsAreTimedAndTheLastRounds) {
  Strategy s = strategy(2);
  s.gradient_accumulation = 12;
  const Trace trace = run_cpu(2, tiny_gpt2(), s, holding(kSteadyRounds, 2)).trace;
  std::set<std::size_t> folded;
  for (const Round& round : trace.rounds()) {
    for (std::size_t i = round.first; i < round.last; ++i) {
      const TraceEvent& event = trace.events()[i];
      if (takes_time(event)) {
        EXPECT_GT(event.timing.end_ns, 0) << describe(event);
      }
    }
    if (round.count > 1) folded.insert(static_cast<std::size_t>(round.count));
  }
  EXPECT_EQ(folded, (std::set<std::size_t>{12 - kSteadyRounds}));
}

// What differs among the micro-batches of a step is seen: the hash is not of a round's length
// alone.
TEST(Rounds, TheHashCountsRoundsAndTellsThemApart) {
  std::set<std::uint64_t> hashes;
  for (const std::int64_t accumulation : {5, 6, 7, 100}) {
    Strategy s = strategy(2);
    s.gradient_accumulation = accumulation;
    hashes.insert(run_sim(2, tiny_gpt2(), s, recorded(2)).result.op_sequence_hash);
  }
  EXPECT_EQ(hashes.size(), 4u);
}

// fp16 from a scale that overflows: the recording leaves out the updates that the run left out.
TEST(Overflows, TheRecordingSkipsWhatTheRunSkipped) {
  for (const int stage : {0, 1, 3}) {
    Strategy s = strategy(stage, DType::f16);
    s.loss_scaler.initial_scale_power = 24;
    const RunResult real = run_cpu(2, tiny_gpt2(), s, steps(12)).result;
    ASSERT_GT(real.skipped_steps, 0);
    ASSERT_LT(real.skipped_steps, 12);
    ProgramOptions options = recorded(12);
    EXPECT_NE(run_sim(2, tiny_gpt2(), s, options).result.op_count, real.op_count);
    options.overflows = overflowed_steps(real);
    EXPECT_EQ(static_cast<std::int64_t>(options.overflows.size()), real.skipped_steps);
    const RunResult twin = run_sim(2, tiny_gpt2(), s, options).result;
    expect_twins(real, twin, s.name);
    EXPECT_EQ(twin.skipped_steps, real.skipped_steps);
  }
}

std::size_t heap_in_use() {
  const struct mallinfo2 info = mallinfo2();
  return info.uordblks + info.hblkhd;
}

// In the last of so many steps, with all that is kept of them.
std::int64_t heap_after(std::int64_t count) {
  std::atomic<std::size_t> held{0};
  ProgramOptions options = steps(count);
  options.on_step = [&](std::int64_t, const StepMetrics&, double) { held = heap_in_use(); };
  const Finished run = run_cpu(2, smallest_gpt2(), strategy(1, DType::bf16), options);
  EXPECT_EQ(run.result.steps, count);
  return static_cast<std::int64_t>(held);
}

TEST(Growth, IsAtMost64BytesAStep) {
  if (heap_in_use() == 0) GTEST_SKIP() << "this allocator does not say what is in use";
  constexpr std::int64_t kFew = 200, kMany = 1200;
  heap_after(kFew);  // what is made once
  const std::int64_t few = heap_after(kFew), many = heap_after(kMany);
  EXPECT_LE(many - few, 64 * (kMany - kFew));
}

}  // namespace
}  // namespace zl::test
