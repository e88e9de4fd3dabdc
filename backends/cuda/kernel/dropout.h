// Counter-based random words and dropout for a few neighbouring elements.
// Ownership: nothing. Threads: device code.
#pragma once

#include <math.h>

#include "backends/cuda/kernel/runs.h"
#include "core/ops/dropout_spec.h"

namespace zl::cuda {

// words[i] = random_bits(key, index + i).
template <int kCount>
__device__ __forceinline__ void random_run(const RngKey& key, std::uint64_t index,
                                           std::uint32_t (&words)[kCount]) {
  if constexpr (kCount % 4 != 0) {
#pragma unroll
    for (int i = 0; i < kCount; ++i) {
      words[i] = random_bits(key, index + static_cast<std::uint64_t>(i));
    }
  } else {
    // Philox makes four words at a time; a run that starts within four takes its words from two.
    const std::uint64_t high = (std::uint64_t{key.stream} << 32) | key.step;
    const unsigned skip = index % 4;
    Philox4 four = philox(key.seed, index / 4, high);
#pragma unroll
    for (int i = 0; i < kCount; i += 4) {
      Philox4 next = four;
      if (i + 4 < kCount || skip != 0) next = philox(key.seed, index / 4 + i / 4 + 1, high);
      std::uint32_t window[7] = {four.word[0], four.word[1], four.word[2], four.word[3],
                                 next.word[0], next.word[1], next.word[2]};
      if (skip != 0) {
#pragma unroll
        for (int j = 0; j < 6; ++j) window[j] = skip % 2 != 0 ? window[j + 1] : window[j];
#pragma unroll
        for (int j = 0; j < 4; ++j) window[j] = skip >= 2 ? window[j + 2] : window[j];
      }
#pragma unroll
      for (int j = 0; j < 4; ++j) words[i + j] = window[j];
      four = next;
    }
  }
}

// values[i] *= 1 / (1 - p) where element spec.base + index + i is kept, else 0. Nothing for p = 0.
template <class A, int kCount>
__device__ __forceinline__ void apply_dropout(const DropoutSpec& spec, std::int64_t index,
                                              A (&values)[kCount]) {
  if (spec.p <= 0) return;
  std::uint32_t words[kCount];
  random_run(spec.key, spec.base + static_cast<std::uint64_t>(index), words);
  const A scale = A{1} / (A{1} - static_cast<A>(spec.p));
  // uniform < p in whole numbers: both sides times 2^24, which is exact, and of the whole word.
  const auto last_dropped = (static_cast<std::uint32_t>(::ceilf(spec.p * 0x1p24f)) << 8) - 1;
#pragma unroll
  for (int i = 0; i < kCount; ++i) {
    values[i] = words[i] > last_dropped ? values[i] * scale : A{0};
  }
}

}  // namespace zl::cuda
