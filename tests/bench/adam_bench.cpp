// The fused AdamW step against the memory bandwidth of the same run: each iteration times the step
// and, right after it, a probe with the same streams (three read and written, one read). And the
// norm of the gradients before it.
#include <benchmark/benchmark.h>
#include <sys/mman.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <memory>
#include <vector>

#include "backends/cpu/ops/ops.h"
#include "core/ops/elementwise.h"
#include "core/ops/optimizer.h"

namespace {

using namespace zl;

struct FreeDelete {
  void operator()(void* memory) const { std::free(memory); }
};

// A tensor in huge pages where the system grants them, as the device's slabs are.
class Storage {
 public:
  Storage(DType dtype, std::int64_t count, double value) {
    view_ = {nullptr, dtype, Shape{count}};
    const std::size_t page = std::size_t{2} << 20;
    const std::size_t bytes = (static_cast<std::size_t>(view_.bytes()) + page - 1) / page * page;
    memory_.reset(std::aligned_alloc(page, bytes));
    madvise(memory_.get(), bytes, MADV_HUGEPAGE);
    view_.data = static_cast<std::byte*>(memory_.get());
    cpu::execute(Fill{view_, value}, {2});
  }
  const TensorView& view() const { return view_; }

 private:
  std::unique_ptr<void, FreeDelete> memory_;
  TensorView view_;
};

struct Problem {
  Problem(std::int64_t count, DType grad_type, DType copy_type, bool with_copy)
      : param(DType::f32, count, 0.5),
        grad(grad_type, count, 0.25),
        m(DType::f32, count, 0.1),
        v(DType::f32, count, 0.01),
        copy(copy_type, with_copy ? count : 1, 0) {
    step.param = param.view();
    step.grad = grad.view();
    step.m = m.view();
    step.v = v.view();
    if (with_copy) step.copy = copy.view();
    step.lr = 1e-3f;
    step.beta1 = 0.9f;
    step.beta2 = 0.95f;
    step.epsilon = 1e-8f;
    step.weight_decay = 0.1f;
    step.bias1 = 0.1f;
    step.bias2 = 0.05f;
  }

  Storage param, grad, m, v, copy;
  AdamStep step;
};

// One step from the constants of Problem, in double; every element must agree.
bool step_is_right(Problem& problem) {
  cpu::execute(problem.step, {2});
  const double g = 0.25, lr = 1e-3;
  const double m = 0.9 * 0.1 + 0.1 * g, v = 0.95 * 0.01 + 0.05 * g * g;
  const double expected = 0.5 * (1 - lr * 0.1) - lr * (m / 0.1) / (std::sqrt(v / 0.05) + 1e-8);
  const float* param = problem.param.view().as<const float>();
  return std::all_of(param, param + problem.param.view().count(),
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

template <class F>
double seconds(F&& work) {
  const auto start = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

double median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + values.size() / 2, values.end());
  return values[values.size() / 2];
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
  const double step_bytes =
      static_cast<double>(problem.step.cost().bytes_read + problem.step.cost().bytes_written);
  const double probe_bytes =
      static_cast<double>(traffic.step.cost().bytes_read + traffic.step.cost().bytes_written);
  std::vector<double> step_rate, probe_rate, ratio;
  for (auto _ : state) {
    const double step_time = seconds([&] { cpu::execute(problem.step, {threads}); });
    const double probe_time = seconds([&] { probe(traffic.step, threads); });
    state.SetIterationTime(step_time);
    step_rate.push_back(step_bytes / step_time);
    probe_rate.push_back(probe_bytes / probe_time);
    ratio.push_back(step_rate.back() / probe_rate.back());
  }
  state.counters["step_GB/s"] = median(step_rate) * 1e-9;
  state.counters["probe_GB/s"] = median(probe_rate) * 1e-9;
  state.counters["of_bandwidth"] = median(ratio);
  state.SetItemsProcessed(state.iterations() * problem.step.param.count());
}

// The sum of squares of gradients, in turn with their largest magnitude, which reads the same and
// hardly computes. Arguments as above.
void squared_sum(benchmark::State& state, DType type) {
  const int threads = static_cast<int>(state.range(0));
  const Storage gradients(type, state.range(1) << 20, 0.25), bound(DType::f32, 1, 0.25),
      parts(DType::f64, 2, 0);
  const std::int64_t count = gradients.view().count();
  const SquaredSum sum{gradients.view(), bound.view(), parts.view(), count, false};
  std::vector<double> rate, ratio;
  for (auto _ : state) {
    const double time = seconds([&] { cpu::execute(sum, {threads}); });
    const double reading = seconds([&] {
      cpu::execute(AbsMax{gradients.view(), bound.view(), false}, {threads});
    });
    state.SetIterationTime(time);
    rate.push_back(static_cast<double>(gradients.view().bytes()) / time);
    ratio.push_back(reading / time);
  }
  const auto* both = parts.view().as<const double>();
  if (both[0] + both[1] != 0.0625 * static_cast<double>(count)) state.SkipWithError("wrong sum");
  state.counters["GB/s"] = median(rate) * 1e-9;
  state.counters["of_reading"] = median(ratio);
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

}  // namespace
