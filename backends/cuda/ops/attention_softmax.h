// The online softmax of attention's forward kernels, over the tile operations of attention_tiles.h.
// Ownership: nothing. Threads: device code.
#pragma once

#include "backends/cuda/ops/attention_tiles.h"

namespace zl::cuda {

// The running softmax of a thread's rows, in units of log2: peak is the largest score so far, sum
// this thread's part of the row's sum of 2^(slope (score - peak)).
template <class Tiles>
struct RunningSoftmax {
  using A = typename Tiles::Arithmetic;
  A peak[Tiles::kRows], sum[Tiles::kRows];

  __device__ RunningSoftmax() {
    for (int r = 0; r < Tiles::kRows; ++r) peak[r] = static_cast<A>(-INFINITY), sum[r] = A{0};
  }

  // Scores become probabilities against the new peaks; earlier sums are rescaled.
  template <class Scores, class Sums>
  __device__ __forceinline__ void update(A slope, Scores& scores, Sums& out) {
#pragma unroll
    for (int r = 0; r < Tiles::kRows; ++r) {
      A highest = peak[r];
#pragma unroll
      for (int c = 0; c < Scores::kOwn; ++c) highest = max(highest, scores.at(r, c));
#pragma unroll
      for (int other = 1; other < Tiles::kRowLanes; other *= 2) {
        highest = max(highest, shuffle_xor(highest, other));
      }
      A keep = power_of_2((peak[r] - highest) * slope), shift = highest * slope;
      if (highest == static_cast<A>(-INFINITY)) keep = shift = A{0};  // no key counts yet
      peak[r] = highest;
      sum[r] *= keep;
#pragma unroll
      for (int c = 0; c < Scores::kOwn; ++c) {
        scores.at(r, c) = power_of_2(scores.at(r, c) * slope - shift);
        sum[r] += scores.at(r, c);
      }
#pragma unroll
      for (int c = 0; c < Sums::kOwn; ++c) out.at(r, c) *= keep;
    }
  }

  // The whole row's sum, in every thread that has a part of it.
  __device__ __forceinline__ A total(int r) const {
    A all = sum[r];
#pragma unroll
    for (int other = 1; other < Tiles::kRowLanes; other *= 2) all += shuffle_xor(all, other);
    return all;
  }
};

}  // namespace zl::cuda
