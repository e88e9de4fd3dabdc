// How often the host waits within a step: once, at its end; with a loss scale once more, before the
// update, to hear of an overflow.
#include "tests/engine/comparisons.h"

namespace zl::test {
namespace {

// Groups of adjacent waits of a step: only the first of a group finds something to wait for.
std::vector<std::int64_t> waits_of(const Trace& trace, int step) {
  std::vector<std::int64_t> groups;
  bool adjacent = false;
  std::int64_t ops = 0;  // since the last group
  for (const TraceEvent& event : trace.events()) {
    if (event.scope.step != step) continue;
    const bool waits = event.type == EventType::synchronize;
    if (waits && !adjacent) groups.push_back(std::exchange(ops, 0));
    adjacent = waits;
    if (event.type == EventType::op) ++ops;
  }
  if (!groups.empty()) groups.push_back(ops);
  return groups;
}

Strategy of(OptimizerKind kind, DType dtype) {
  Strategy s = strategy(kind == OptimizerKind::onebit_adam ? 1 : 0, dtype);
  s.optimizer.kind = kind;
  s.optimizer.momentum = 0.9;
  s.optimizer.onebit.freeze_step = 3;
  s.optimizer.onebit.var_freeze_step = 3;
  return s;
}

void expect_waits(const Strategy& s, const std::string& what) {
  ProgramOptions options = steps(7);
  options.keep_trace = true;
  const Finished twin = run_sim(2, tiny_gpt2(), s, options);
  const bool asks = s.precision.compute_dtype == DType::f16;
  for (const int step : {2, 5, 6}) {  // the third freezes, and measures what it freezes
    const std::vector<std::int64_t> ops = waits_of(twin.trace, step);
    ASSERT_EQ(ops.size(), asks ? 3u : 2u) << what << ", step " << step;
    EXPECT_LE(ops.back(), 1) << what << ": only the sum of losses is cleared after the wait";
  }
}

TEST(HostWaits, OneAStepForEveryOptimizerAndOneMoreUnderALossScale) {
  for (const OptimizerKind kind :
       {OptimizerKind::adam, OptimizerKind::adamw, OptimizerKind::sgd, OptimizerKind::lamb,
        OptimizerKind::onebit_adam, OptimizerKind::zero_one_adam, OptimizerKind::onebit_lamb}) {
    for (const DType dtype : {DType::f32, DType::bf16, DType::f16}) {
      for (const double clipping : {0.0, 1.0}) {
        Strategy s = of(kind, dtype);
        s.gradient_clipping = clipping;
        expect_waits(s,
                     "optimizer " + std::to_string(static_cast<int>(kind)) + " " + name_of(dtype));
      }
    }
  }
}

TEST(HostWaits, OneAStepWhereTheHostUpdates) {
  for (const DType dtype : {DType::f32, DType::bf16, DType::f16}) {
    for (const Strategy& s : offload_variants(dtype)) expect_waits(s, s.name);
  }
}

TEST(HostWaits, AStaticScaleAsksToo) {
  Strategy s = strategy(1, DType::f16);
  s.loss_scaler.static_scale = 64;
  expect_waits(s, "static scale");
}

// Without a loss scale nothing is asked: the norm says what the gradients were.
TEST(Overflow, IsSaidByTheNormWithoutALossScale) {
  for (const DType dtype : {DType::f32, DType::bf16}) {
    Strategy s = strategy(1, dtype);
    s.optimizer.kind = OptimizerKind::sgd;
    s.optimizer.lr = 1e30;
    const RunResult r = run_cpu(2, tiny_gpt2(), s, steps(4)).result;
    EXPECT_EQ(r.skipped_steps, 0) << name_of(dtype);
    EXPECT_FALSE(std::isfinite(r.grad_norm.back())) << name_of(dtype);
  }
}

}  // namespace
}  // namespace zl::test
