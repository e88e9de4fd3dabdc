// The fused AdamW step against the memory bandwidth of the same run: each iteration times the step
// and, right after it, a probe with the same streams (three read and written, one read). And the
// norm of the gradients before it.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <cmath>

#include "backends/cpu/ops/ops.h"
#include "core/ops/elementwise.h"
#include "core/ops/optimizer.h"
#include "tests/bench/paired.h"

namespace {

using namespace zl;

zl::bench::Storage filled(DType dtype, std::int64_t count, double value) {
  zl::bench::Storage storage(dtype, Shape{count});
  cpu::execute(Fill{storage.view, value}, {2});
  return storage;
}

struct Problem {
  Problem(std::int64_t count, DType grad_type, DType copy_type, bool with_copy)
      : param(filled(DType::f32, count, 0.5)),
        grad(filled(grad_type, count, 0.25)),
        m(filled(DType::f32, count, 0.1)),
        v(filled(DType::f32, count, 0.01)),
        copy(filled(copy_type, with_copy ? count : 1, 0)) {
    step.param = param.view;
    step.grad = grad.view;
    step.m = m.view;
    step.v = v.view;
    if (with_copy) step.copy = copy.view;
    step.lr = 1e-3f;
    step.beta1 = 0.9f;
    step.beta2 = 0.95f;
    step.epsilon = 1e-8f;
    step.weight_decay = 0.1f;
    step.bias1 = 0.1f;
    step.bias2 = 0.05f;
  }

  zl::bench::Storage param, grad, m, v, copy;
  AdamStep step;
};

// One step from the constants of Problem, in double; every element must agree.
bool step_is_right(Problem& problem) {
  cpu::execute(problem.step, {2});
  const double g = 0.25, lr = 1e-3;
  const double m = 0.9 * 0.1 + 0.1 * g, v = 0.95 * 0.01 + 0.05 * g * g;
  const double expected = 0.5 * (1 - lr * 0.1) - lr * (m / 0.1) / (std::sqrt(v / 0.05) + 1e-8);
  const float* param = problem.param.view.as<const float>();
  return std::all_of(param, param + problem.param.view.count(),
                     [&](float p) { return std::abs(p - expected) < 2e-7; });
}

// Three streams read and written, one read: the traffic of the step without its arithmetic.
void probe(const AdamStep& step, int threads) {
  float* __restrict p = step.param.as<float>();
  float* __restrict m = step.m.as<float>();
  float* __restrict v = step.v.as<float>();
  const float* __restrict g = step.grad.as<const float>();
  const std::int64_t count = step.param.count();
#pragma omp parallel for simd num_threads(threads) schedule(static)
  for (std::int64_t i = 0; i < count; ++i) {
    p[i] += g[i] * 1e-9f;
    m[i] += g[i] * 1e-9f;
    v[i] += g[i] * 1e-9f;
  }
}

std::int64_t traffic_of(const AdamStep& step) {
  return step.cost().bytes_read + step.cost().bytes_written;
}

// Arguments: threads, millions of parameters. Probe bandwidth and ratio need f32 gradients.
void adamw(benchmark::State& state, DType grad_type, DType copy_type, bool with_copy) {
  const int threads = static_cast<int>(state.range(0));
  Problem problem(state.range(1) << 20, grad_type, copy_type, with_copy);
  if (!step_is_right(problem)) {
    state.SkipWithError("the step does not match its formula");
    return;
  }
  Problem traffic(state.range(1) << 20, DType::f32, DType::f32, false);
  zl::bench::run_beside(
      state, "of_bandwidth", traffic_of(problem.step),
      [&] { cpu::execute(problem.step, {threads}); }, traffic_of(traffic.step),
      [&] { probe(traffic.step, threads); });
  state.SetItemsProcessed(state.iterations() * problem.step.param.count());
}

// The step over four slabs against the same over streams that lie 256 MiB apart.
void adamw_in_slabs(benchmark::State& state) {
  const int threads = static_cast<int>(state.range(0));
  constexpr std::int64_t kCount = 64 << 20;
  Problem problem(kCount, DType::f32, DType::f32, false);
  if (!step_is_right(problem)) {
    state.SkipWithError("the step does not match its formula");
    return;
  }
  const zl::bench::Storage all = filled(DType::f32, 4 * kCount, 0.25);
  AdamStep apart = problem.step;
  std::int64_t first = 0;
  for (TensorView* view : {&apart.param, &apart.grad, &apart.m, &apart.v}) {
    *view = all.view.flat(first, kCount);
    first += kCount;
  }
  zl::bench::run_beside(
      state, "of_apart", traffic_of(problem.step), [&] { cpu::execute(problem.step, {threads}); },
      traffic_of(apart), [&] { cpu::execute(apart, {threads}); });
  state.SetItemsProcessed(state.iterations() * kCount);
}

// The sum of squares of gradients, in turn with their largest magnitude, which reads the same and
// hardly computes. Arguments as above.
void squared_sum(benchmark::State& state, DType type) {
  const int threads = static_cast<int>(state.range(0));
  const zl::bench::Storage gradients = filled(type, state.range(1) << 20, 0.25),
                           bound = filled(DType::f32, 1, 0.25), parts = filled(DType::f64, 2, 0);
  const std::int64_t count = gradients.view.count();
  const SquaredSum sum{gradients.view, bound.view, parts.view, count, false};
  const AbsMax reading{gradients.view, bound.view, false};
  zl::bench::run_beside(
      state, "of_reading", gradients.view.bytes(), [&] { cpu::execute(sum, {threads}); },
      gradients.view.bytes(), [&] { cpu::execute(reading, {threads}); });
  const auto* both = parts.view.as<const double>();
  if (both[0] + both[1] != 0.0625 * static_cast<double>(count)) state.SkipWithError("wrong sum");
  state.SetItemsProcessed(state.iterations() * count);
}

BENCHMARK_CAPTURE(squared_sum, f32, DType::f32)
    ->Args({1, 128})
    ->Args({2, 128})
    ->UseManualTime()
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(squared_sum, bf16, DType::bf16)
    ->Args({2, 128})
    ->UseManualTime()
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(adamw, f32, DType::f32, DType::f32, false)
    ->Args({1, 32})
    ->Args({2, 32})
    ->UseManualTime()
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(adamw, f32_with_bf16_copy, DType::f32, DType::bf16, true)
    ->Args({2, 32})
    ->UseManualTime()
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(adamw, bf16_gradient_and_copy, DType::bf16, DType::bf16, true)
    ->Args({2, 32})
    ->UseManualTime()
    ->Unit(benchmark::kMillisecond);

BENCHMARK(adamw_in_slabs)->Arg(1)->Arg(2)->UseManualTime()->Unit(benchmark::kMillisecond);

}  // namespace
