// The softmax of a tile of queries over keys that come some at a time (Milakov & Gimelshein 2018):
// the running maximum and sum of each, and the rows of output that they end with.
// Ownership: a value. Threads: one.
#pragma once

#include <cmath>
#include <limits>

#include "backends/cpu/ops/attention_tiles.h"
#include "backends/cpu/ops/fast_math.h"
#include "core/ops/attention.h"

namespace zl::cpu {

template <class A>
class RunningSoftmax {
 public:
  static constexpr A kUnseen = -std::numeric_limits<A>::infinity();

  void clear() {
    std::fill(maximum_, maximum_ + kTile, kUnseen);
    std::fill(sum_, sum_ + kTile, A{0});
  }

  // Scores [keys][stride] of the queries [first, first + lanes) become probabilities against their
  // new maxima. keep[lanes]: the factors of what was summed up before.
  void add(A* scores, std::int64_t stride, std::int64_t keys, std::int64_t first,
           std::int64_t lanes, A* keep) {
    for (std::int64_t lane = 0; lane < lanes; lane += kLanes<A>) {
      A* column = scores + lane;
      A *maximum = maximum_ + first + lane, *sum = sum_ + first + lane;
      const Vector<A> before = load_vector(maximum), peak = peak_of(column, stride, keys, before);
      Vector<A> added = {};
      for (std::int64_t k = 0; k < keys; ++k) {
        const Vector<A> probability = fast_exp(load_vector(column + k * stride) - peak);
        store_vector(column + k * stride, probability);
        added += probability;
      }
      const Vector<A> kept = fast_exp(before - peak);
      store_vector(keep + lane, kept);
      store_vector(sum, load_vector(sum) * kept + added);
      store_vector(maximum, peak);
    }
  }

  // Of the queries [first, first + count) of head `plane`, lanes from `lane` on: their lse, and
  // factors[count] of what was summed up, up to whole vectors.
  void end(const AttentionForward& op, std::int64_t plane, std::int64_t first, std::int64_t lane,
           std::int64_t count, A* factors) const {
    A* lse = op.lse.as<A>() + plane * op.shape.sequence + first;
    for (std::int64_t q = 0; q < count; q += kLanes<A>) {
      const Vector<A> sum = load_vector(sum_ + lane + q);
      store_vector(factors + q, sum > A{0} ? A{1} / sum : Vector<A>{});
      const Vector<A> each = load_vector(maximum_ + lane + q) + fast_log(sum);
      std::memcpy(lse + q, &each, sizeof(A) * std::min<std::size_t>(kLanes<A>, count - q));
    }
  }

 private:
  // Not below the lowest number, where nothing is seen.
  static Vector<A> peak_of(const A* column, std::int64_t stride, std::int64_t keys,
                           Vector<A> before) {
    Vector<A> peaks[4] = {before, before, before, before};  // so that none waits for the last
    std::int64_t k = 0;
    for (; k + 4 <= keys; k += 4) {
#pragma GCC unroll 4
      for (std::int64_t i = 0; i < 4; ++i) {
        peaks[i] = larger(load_vector(column + (k + i) * stride), peaks[i]);
      }
    }
    for (; k < keys; ++k) peaks[0] = larger(load_vector(column + k * stride), peaks[0]);
    return larger(larger(larger(peaks[0], peaks[1]), larger(peaks[2], peaks[3])),
                  broadcast(std::numeric_limits<A>::lowest()));
  }

  A maximum_[kTile], sum_[kTile];
};

// Rows of `padded` elements that were summed up before the factors keep[rows].
template <class A>
void rescale_rows(const A* keep, std::int64_t rows, std::int64_t padded, A* __restrict out) {
  for (std::int64_t q = 0; q < rows; ++q) {
    if (keep[q] == A{1}) continue;
    A* __restrict row = out + q * padded;
    for (std::int64_t d = 0; d < padded; ++d) row[d] *= keep[q];
  }
}

}  // namespace zl::cpu
