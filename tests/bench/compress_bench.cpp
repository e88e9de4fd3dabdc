// Packing and unpacking of signs against the memory bandwidth of the same run: each iteration times
// the op and, right after it, a loop with the same traffic.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "backends/cpu/ops/ops.h"
#include "core/ops/compress.h"
#include "core/ops/elementwise.h"
#include "tests/bench/paired.h"

namespace {

using namespace zl;
using zl::bench::Storage;

constexpr std::int64_t kColumns = std::int64_t{8} << 20, kRows = 4;

struct Problem {
  Storage x{DType::f32, Shape{kRows, kColumns}};
  Storage packed{DType::u8, Shape{kRows, packed_bytes(kColumns)}};
  Storage scales{DType::f32, Shape{kRows, 1}}, square{DType::f64, Shape{2}};
  Storage sums{DType::f32, Shape{kColumns}};

  Problem() {
    cpu::execute(Fill{sums.view, 0}, {2});
    cpu::execute(Fill{scales.view, 0.5}, {2});
    refill();
    square.view.as<double>()[0] = 0.25 * kRows * kColumns;
    square.view.as<double>()[1] = 0;
  }
  void refill() {
    float* values = x.view.as<float>();
    for (std::int64_t i = 0; i < x.view.count(); ++i) values[i] = i % 3 == 0 ? 0.75f : -0.25f;
  }
  SignCompress compress() const {
    return {x.view,         square.view,   packed.view, scales.view.flat(0, 1),
            x.view.count(), x.view.count()};
  }
  SignUnpack unpack() const { return {packed.view, scales.view, x.view, 0, x.view.count()}; }
  SignAverage average() const { return {packed.view, scales.view, sums.view, 0, kColumns}; }
};

// Signs + - - + - - ... of 0.75, -0.25, -0.25, with scale 0.5: remainders of 0.25.
bool is_right(Problem& problem) {
  problem.refill();
  cpu::execute(problem.compress(), {2});
  const float* x = problem.x.view.as<const float>();
  for (std::int64_t i = 0; i < problem.x.view.count(); ++i) {
    if (x[i] != 0.25f) return false;
  }
  cpu::execute(problem.unpack(), {2});
  for (std::int64_t i = 0; i < problem.x.view.count(); ++i) {
    if (x[i] != (i % 3 == 0 ? 0.5f : -0.5f)) return false;
  }
  return true;
}

// Reads and writes x.
void read_write(const TensorView& view, int threads) {
  float* __restrict x = view.as<float>();
#pragma omp parallel for simd num_threads(threads) schedule(static)
  for (std::int64_t i = 0; i < view.count(); ++i) x[i] = x[i] * 0.999f;
}

// Only writes x.
void write(const TensorView& view, int threads) {
  float* __restrict x = view.as<float>();
#pragma omp parallel for simd num_threads(threads) schedule(static)
  for (std::int64_t i = 0; i < view.count(); ++i) x[i] = 0.5f;
}

template <class Op, class Probe>
void beside(benchmark::State& state, const Op& op, int threads, Probe&& probe) {
  const std::int64_t bytes = op.cost().bytes_read + op.cost().bytes_written;
  zl::bench::run_beside(
      state, "of_bandwidth", bytes, [&] { cpu::execute(op, {threads}); }, bytes, probe);
}

void compress(benchmark::State& state) {
  const int threads = static_cast<int>(state.range(0));
  Problem problem;
  if (!is_right(problem)) return state.SkipWithError("wrong signs or remainders");
  beside(state, problem.compress(), threads, [&] { read_write(problem.x.view, threads); });
}

void unpack(benchmark::State& state) {
  const int threads = static_cast<int>(state.range(0));
  Problem problem;
  if (!is_right(problem)) return state.SkipWithError("wrong signs or remainders");
  beside(state, problem.unpack(), threads, [&] { write(problem.x.view, threads); });
}

void average(benchmark::State& state) {
  const int threads = static_cast<int>(state.range(0));
  Problem problem;
  beside(state, problem.average(), threads, [&] { read_write(problem.sums.view, threads); });
}

BENCHMARK(compress)->Arg(1)->Arg(2)->UseManualTime()->Unit(benchmark::kMillisecond);
BENCHMARK(unpack)->Arg(1)->Arg(2)->UseManualTime()->Unit(benchmark::kMillisecond);
BENCHMARK(average)->Arg(1)->Arg(2)->UseManualTime()->Unit(benchmark::kMillisecond);

}  // namespace
