// Timing an operation against another, or against the processor's multiply-add peak, measured in
// the same moments. Ownership: nothing. Threads: the probe opens its own OpenMP team.
#pragma once

#include <benchmark/benchmark.h>
#include <time.h>

#include <memory>
#include <vector>

#include "backends/cpu/ops/vector.h"
#include "backends/cpu/slab.h"
#include "core/base/median.h"
#include "core/base/tensor.h"

namespace zl::bench {

// A tensor in a slab of its own.
struct Storage {
  struct Unmap {
    std::int64_t bytes;
    void operator()(std::byte* slab) const { cpu::unmap_slab(slab, bytes); }
  };
  std::unique_ptr<std::byte, Unmap> memory;
  TensorView view;

  Storage(DType dtype, const Shape& shape) : view{nullptr, dtype, shape} {
    memory = {cpu::map_slab(view.bytes()), Unmap{view.bytes()}};
    view.data = memory.get();
  }
};

inline double seconds_of(clockid_t clock) {
  timespec now{};
  clock_gettime(clock, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}
inline double wall_seconds() { return seconds_of(CLOCK_MONOTONIC); }
template <class Work>
double wall_seconds(Work&& work) {
  const double begin = wall_seconds();
  work();
  return wall_seconds() - begin;
}
// Wall time; the thread's processor time for one thread, which other programs do not disturb.
inline double seconds(int threads) {
  return threads == 1 ? seconds_of(CLOCK_THREAD_CPUTIME_ID) : wall_seconds();
}

// Of f32 or bf16.
inline double value_at(const TensorView& view, std::int64_t i) {
  return view.dtype == DType::f32 ? view.as<float>()[i] : to_float(view.as<bfloat16>()[i]);
}

// Median of the first over the second, each pair measured in the same moments.
inline double median_ratio(const std::vector<double>& first, const std::vector<double>& second) {
  std::vector<double> ratios;
  for (std::size_t i = 0; i < first.size(); ++i) ratios.push_back(first[i] / second[i]);
  return median(ratios);
}

// fp32 multiply-adds per second x 2 of a loop that lives in registers.
inline double multiply_add_peak(int threads) {
  constexpr int kChains = 12, kRounds = 400000;
  const double begin = seconds(threads);
#pragma omp parallel num_threads(threads)
  {
    cpu::Vector<float> sum[kChains];  // distinct, or the compiler would merge the chains
    for (int i = 0; i < kChains; ++i) sum[i] = cpu::broadcast(static_cast<float>(i));
    const cpu::Vector<float> factor = cpu::broadcast(0.999f);
    for (int round = 0; round < kRounds; ++round) {
#pragma GCC unroll 12
      for (int i = 0; i < kChains; ++i) sum[i] = cpu::multiply_add(sum[i], factor, factor);
    }
    benchmark::DoNotOptimize(sum);
  }
  const double flops = 2.0 * kChains * kRounds * cpu::kLanes<float> * threads;
  return flops / (seconds(threads) - begin);
}

// Runs `operation` once per iteration, each beside a probe; reports medians in GFLOP/s.
template <class F>
void run_paired(benchmark::State& state, int threads, double flops, F&& operation) {
  operation();
  std::vector<double> times, peaks;
  for (auto _ : state) {
    const double begin = seconds(threads);
    operation();
    times.push_back(seconds(threads) - begin);
    peaks.push_back(multiply_add_peak(threads));
    state.SetIterationTime(times.back());
  }
  const double rate = flops / median(times), peak = median(peaks);
  state.counters["ms"] = 1e3 * median(times);
  state.counters["gflops"] = rate * 1e-9;
  state.counters["peak_gflops"] = peak * 1e-9;
  state.counters["of_peak"] = rate / peak;
}

// Runs `work`, which moves so many bytes, once per iteration, each beside `other`; reports the
// median of its GB/s, and as `share` that over the other's.
template <class Work, class Other>
void run_beside(benchmark::State& state, const char* share, std::int64_t bytes, Work&& work,
                std::int64_t other_bytes, Other&& other) {
  std::vector<double> rates, other_rates;
  for (auto _ : state) {
    const double time = wall_seconds(work);
    state.SetIterationTime(time);
    rates.push_back(1e-9 * static_cast<double>(bytes) / time);
    other_rates.push_back(1e-9 * static_cast<double>(other_bytes) / wall_seconds(other));
  }
  state.counters["GB/s"] = median(rates);
  state.counters[share] = median_ratio(rates, other_rates);
}

}  // namespace zl::bench
