// Loops of the CPU ops over the rank's OpenMP team.
// Ownership: nothing. Threads: each call opens and joins its own team; safe from many ranks at
// once.
#pragma once

#include <algorithm>
#include <cstdint>

#include "backends/cpu/ops/ops.h"

#ifdef _OPENMP
#include <omp.h>
#endif

namespace zl::cpu {

// Threads worth waking for `count` items when a thread should get at least `grain` of them.
inline int team_size(const ExecContext& context, std::int64_t count, std::int64_t grain) {
#ifdef _OPENMP
  const std::int64_t useful = count / std::max<std::int64_t>(grain, 1);
  return static_cast<int>(std::clamp<std::int64_t>(useful, 1, std::max(context.threads, 1)));
#else
  (void)context, (void)count, (void)grain;
  return 1;
#endif
}

// Elements of a simple loop that are worth a thread: handing work to one that is awake takes some
// microseconds, waking it tens.
inline constexpr std::int64_t kGrain = 1 << 14;

// Rows of `columns` elements that are, where an element takes `times` the time of a simple one.
inline std::int64_t rows_worth_a_thread(std::int64_t columns, std::int64_t times = 1) {
  return std::max<std::int64_t>(1, kGrain / (std::max<std::int64_t>(columns, 1) * times));
}

// As many threads as a matrix product of so many multiply-adds is worth.
inline ExecContext product_team(const ExecContext& context, std::int64_t multiply_adds) {
  return {team_size(context, multiply_adds, 1 << 20)};
}

// As many threads as `flops` of attention are worth.
inline ExecContext attention_team(const ExecContext& context, double flops) {
  return {team_size(context, static_cast<std::int64_t>(flops), 3 << 18)};
}

// fn(begin, end) over [0, count), cut into one contiguous range per thread. The cut depends only on
// count, grain and the thread count. Runs inline, without a team, when one thread suffices.
// fn must not throw.
template <class F>
void parallel_for(const ExecContext& context, std::int64_t count, std::int64_t grain, F&& fn) {
  if (count <= 0) return;
  const int threads = team_size(context, count, grain);
  if (threads == 1) {
    fn(std::int64_t{0}, count);
    return;
  }
#pragma omp parallel for num_threads(threads) schedule(static, 1)
  for (int part = 0; part < threads; ++part) {
    const std::int64_t begin = count * part / threads;
    const std::int64_t end = count * (part + 1) / threads;
    if (begin < end) fn(begin, end);
  }
}

// fn(i) for each i in [0, count), handed out one at a time: for few, uneven items whose results do
// not depend on who computes them. fn must not throw.
template <class F>
void parallel_tasks(const ExecContext& context, std::int64_t count, F&& fn) {
  const int threads = team_size(context, count, 1);
  if (threads == 1) {
    for (std::int64_t i = 0; i < count; ++i) fn(i);
    return;
  }
#pragma omp parallel for num_threads(threads) schedule(dynamic, 1)
  for (std::int64_t i = 0; i < count; ++i) fn(i);
}

}  // namespace zl::cpu
