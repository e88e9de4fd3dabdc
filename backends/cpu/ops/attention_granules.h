// Products of granules of 16 x 16, which attention over a layout of blocks is made of: their
// factors, what becomes of their sums, and what a mask hides of them. Ownership: nothing. Threads:
// pure functions of their arguments.
#pragma once

#include <algorithm>
#include <cmath>
#include <span>
#include <type_traits>

#include "backends/cpu/ops/attention_blocks.h"
#include "backends/cpu/ops/head_rows.h"
#include "backends/cpu/ops/rows_ahead.h"

namespace zl::cpu {

// Rows as a factor of a product.
template <class A>
struct FactorRows {
  const A* first;
  std::int64_t stride;

  const A* at(std::int64_t row) const { return first + row * stride; }
};

// Those of one head where they lie, for products that take one row after the other; nothing where
// they need a copy: to be converted, or to fill their vectors.
template <class T>
FactorRows<Arithmetic<T>> rows_in_place(const HeadColumns& head, std::int64_t width,
                                        std::int64_t padded) {
  if constexpr (std::is_same_v<T, Arithmetic<T>>) {
    if (width == padded) return {head.matrix.as<const T>() + head.first, head.row_width};
  }
  return {nullptr, padded};
}

// Whether a factor changes no bit of a sum that it is applied to late.
inline bool is_power_of_two(double factor) {
  int exponent = 0;
  return std::frexp(factor, &exponent) == 0.5;
}

// Of RowsAhead::fetch() in the product of two granules, of `length` elements summed up or `length`
// columns.
template <class A>
constexpr std::int64_t fetches(std::int64_t length) {
  return (length + kGranule - 1) / kGranule * (kGranule / kTileRows) * kGranule / kTileColumns<A>;
}

// f(row, column, vector) for the vectors of left[kGranule, depth] right[depth, kGranule], whose
// rows are left_stride and kGranule apart. Meanwhile, here and below, a line of `ahead` is brought
// nearer at every step of the depth.
template <class A, class F>
[[gnu::always_inline]] inline void multiply_granule(const A* left, std::int64_t left_stride,
                                                    const A* right, std::int64_t depth,
                                                    RowsAhead& ahead, const F& f) {
  constexpr int kVectors = std::min<int>(2, kGranule / kLanes<A>);
  constexpr int kRows = 2 * kTileRows / kVectors;  // so that as many sums are under way
  static_assert(kGranule % (kVectors * kLanes<A>) == 0 && kGranule % kRows == 0);
  constexpr std::int64_t kUsual = 64;  // of heads of 64
  for (std::int64_t j = 0; j < kGranule; j += kVectors * kLanes<A>) {
    for (std::int64_t i = 0; i < kGranule; i += kRows) {
      TileSums<A, kRows, kVectors> sums;
      const auto add = [&](auto stride) {
        for (std::int64_t k = 0; k < depth; k += kGranule) {
          ahead.fetch();
          sums.add({left + i * stride + k, stride, 1}, right + k * kGranule + j, kGranule,
                   std::min(kGranule, depth - k));
        }
      };
      if (left_stride == kUsual) {  // a constant, so that rows need no addresses of their own
        add(std::integral_constant<std::int64_t, kUsual>{});
      } else {
        add(left_stride);
      }
      sums.each_row([&](std::int64_t row, const Vector<A>(&values)[kVectors]) {
        for (int v = 0; v < kVectors; ++v) f(i + row, j + v * kLanes<A>, values[v]);
      });
    }
  }
}

// Two factors of a sum of products: of 16 x 16, and 16 rows of the right one.
template <class A>
struct GranuleFactors {
  const A *left, *right;
};

// f(row, column, sums of kTileRows x two vectors) for those of the sum over all of
// left[kGranule, kGranule] right[kGranule, columns], whose rows are right_stride apart. part: on
// the diagonal lies the left one of the last (depth_to_row) or of the first (depth_from_row).
template <class A, class F>
[[gnu::always_inline]] inline void multiply_granules(std::span<const GranuleFactors<A>> all,
                                                     std::int64_t row_stride, std::int64_t k_stride,
                                                     std::int64_t right_stride,
                                                     std::int64_t columns, Part part,
                                                     RowsAhead& ahead, const F& f) {
  for (std::int64_t j = 0; j < columns; j += kTileColumns<A>) {
    for (std::int64_t i = 0; i < kGranule; i += kTileRows) {
      TileSums<A, kTileRows, 2> sums;
      for (std::size_t n = 0; n < all.size(); ++n) {
        const std::int64_t from = part == Part::depth_from_row && n == 0 ? i : 0;
        const bool stops = part == Part::depth_to_row && n + 1 == all.size();
        const std::int64_t to = stops ? i + kTileRows : kGranule;
        const LeftOperand<A> left{all[n].left + i * row_stride + from * k_stride, row_stride,
                                  k_stride};
        ahead.fetch();
        sums.add(left, all[n].right + from * right_stride + j, right_stride, to - from);
      }
      f(i, j, sums);
    }
  }
}

// What becomes of the sums of a granule's rows: they wait for those of later products, or go where
// they belong.
template <class T>
struct GranuleSums {
  using A = Arithmetic<T>;

  A* waiting;  // [kGranule][padded]
  std::int64_t padded;
  bool adds, ends;  // whether some wait; whether none come later
  HeadRows<T>& rows;
  std::int64_t first;  // of the rows
  const A* factors;    // [kGranule], of what is put there

  [[gnu::always_inline]] void operator()(std::int64_t row, std::int64_t column,
                                         TileSums<A, kTileRows, 2>& more) const {
    A* at = waiting + row * padded + column;
    if (!ends) return more.store(at, padded, adds);
    if (adds) more.add(at, padded);
    rows.put(first + row, column, factors + row, more.sum);
  }
};

// Of values[key][query] of the granules at `key` and `query`, those that a causal mask hides become
// `hidden`, and those of keys from `limit` on.
template <class A>
void hide_unseen(std::int64_t key, std::int64_t query, bool causal, std::int64_t limit, A hidden,
                 A* values) {
  const std::int64_t visible = std::clamp<std::int64_t>(limit - key, 0, kGranule);
  std::fill(values + visible * kGranule, values + kGranule * kGranule, hidden);
  if (!causal || key != query) return;
  Vector<A> place;
  for (int lane = 0; lane < kLanes<A>; ++lane) place[lane] = static_cast<A>(lane);
  for (std::int64_t k = 1; k < visible; ++k) {
    for (std::int64_t lane = 0; lane < kGranule; lane += kLanes<A>) {
      A* at = values + k * kGranule + lane;
      const Vector<A> behind = broadcast(static_cast<A>(k - lane));
      store_vector(at, place < behind ? broadcast(hidden) : load_vector(at));
    }
  }
}

}  // namespace zl::cpu
