// Flat element-wise loops in cache-sized blocks over the threads of one rank.
// Ownership: nothing. Threads: `fn` runs at once on several threads, on disjoint ranges.
#pragma once

#include "backends/cpu/ops/element.h"
#include "backends/cpu/ops/parallel.h"

namespace zl::cpu {

inline constexpr std::int64_t kGrain = 16 * kBlock;  // smallest range worth a thread

// fn(first, length) over [0, count) in blocks of at most kBlock. fn must not throw.
template <class F>
void for_blocks(const ExecContext& context, std::int64_t count, F&& fn) {
  parallel_for(context, count, kGrain, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t first = begin; first < end; first += kBlock) {
      fn(first, std::min(kBlock, end - first));
    }
  });
}

}  // namespace zl::cpu
