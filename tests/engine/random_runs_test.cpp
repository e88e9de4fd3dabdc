// Random configurations: what is recorded is what is executed, and the stages of ZeRO give the same
// bits. ZL_TEST_RUNS: how many of each.
#include "tests/engine/random_runs.h"

#include "core/base/error.h"
#include "tests/engine/comparisons.h"
#include "tests/seed.h"

namespace zl::test {
namespace {

int runs() {
  const char* given = std::getenv("ZL_TEST_RUNS");
  return given == nullptr ? 20 : std::max(1, std::atoi(given));
}

// Calls `check(draw)` until so many draws were accepted, times `times`; it is false where the
// engine refuses one.
template <class Check>
void for_random_runs(std::uint64_t salt, const Check& check, int times = 1) {
  const int wanted = times * runs();
  int done = 0;
  for (int tried = 0; done < wanted; ++tried) {
    ASSERT_LT(tried, 20 * wanted) << "hardly a draw is accepted";
    SCOPED_TRACE("ZL_TEST_SEED=" + std::to_string(test_seed()) + ", draw " + std::to_string(tried));
    Draw draw(test_seed() * 1'000'003 + salt + static_cast<std::uint64_t>(tried) * 2);
    if (check(draw)) ++done;
    if (testing::Test::HasFailure()) return;
  }
}

// The run, or nothing where the engine says that there is no such strategy.
std::optional<Finished> accepted(int ranks, const ModelConfig& model, const Strategy& s,
                                 const ProgramOptions& options) {
  try {
    return run_cpu(ranks, model, s, options);
  } catch (const Error& error) {
    if (error.code() == ErrorCode::invalid) return std::nullopt;
    throw;
  }
}

TEST(RandomRuns, WhatIsRecordedIsWhatIsExecuted) {
  for_random_runs(0, [](Draw& draw) {
    const ModelConfig model = random_model(draw);
    const Strategy s = random_strategy(draw);
    const int ranks = static_cast<int>(draw.of({1, 2, 2, 3, 5}));
    ProgramOptions options = steps(draw.of({1, 2, 4, 6}));
    options.held_rounds = 2;
    options.keep_going = true;  // some draws diverge
    const auto real = accepted(ranks, model, s, options);
    if (!real) return false;
    options.recorded_steps = kSteadySteps;
    options.recorded_rounds = steady_rounds(s);
    options.overflows = overflowed_steps(real->result);
    expect_twins(real->result, run_sim(ranks, model, s, options).result, describe(model, s));
    return true;
  });
}

// Their buffers go around: until each has had its turn a micro-batch is not like the one before.
TEST(RandomRuns, WeightsInFilesAreRecordedLikeAllMicroBatches) {
  for_random_runs(
      2,
      [](Draw& draw) {
        const ModelConfig model = random_model(draw);
        Strategy s = random_strategy(draw);
        if (is_onebit(s.optimizer.kind)) return false;
        s.zero.stage = 3;
        draw_offload(draw, s);
        s.offload.parameters = Tier::nvme;
        s.offload.max_in_cpu = draw.of({0, 0, 1000});
        s.offload.parameter_buffer_count = draw.of({2, 5, 9});
        s.gradient_accumulation = draw.of({7, 12, 20});
        ProgramOptions options = steps(2);
        try {
          const Finished all = run_sim(2, model, s, options);
          options.recorded_rounds = steady_rounds(s);
          expect_twins(all.result, run_sim(2, model, s, options).result, describe(model, s));
        } catch (const Error& error) {
          if (error.code() == ErrorCode::invalid) return false;
          throw;
        }
        return true;
      },
      10);
}

// With accumulation, stages 2 and 3 add up reduced gradients and the others reduce what was added.
TEST(RandomRuns, StagesAndSchedulesChangeNoBit) {
  for_random_runs(1, [](Draw& draw) {
    const ModelConfig model = random_model(draw);
    Strategy s = random_strategy(draw);
    if (is_onebit(s.optimizer.kind)) return false;
    const bool accumulates = s.gradient_accumulation > 1;
    const int ranks = static_cast<int>(draw.of({1, 2, 3, 5}));
    const ProgramOptions options = steps(4);
    std::optional<Finished> first;
    for (int stage = accumulates ? 2 : 0; stage <= 3; ++stage) {
      s.zero.stage = stage;
      s.offload = {};
      draw_schedule(draw, s);
      const auto one = accepted(ranks, model, s, options);
      if (!one) continue;
      if (first) expect_same_bits(*first, *one, describe(model, s) + std::to_string(stage));
      if (!first) first = one;
    }
    return first.has_value();
  });
}

}  // namespace
}  // namespace zl::test
