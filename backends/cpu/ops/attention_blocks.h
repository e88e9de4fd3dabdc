// What the forward and the backward of attention over a layout of blocks share. A tile of 64
// queries meets the granules (16 keys) of its entries some at a time; products leave out the parts
// of 16 x 16 that no layout asks for, so that they cost nothing and what lies there touches
// nothing. Ownership: nothing. Threads: pure functions of their arguments.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <limits>
#include <span>
#include <utility>

#include "backends/cpu/ops/attention_tiles.h"
#include "backends/cpu/ops/head_rows.h"
#include "backends/cpu/ops/rows_ahead.h"
#include "core/ops/block_table.h"

namespace zl::cpu {

inline constexpr std::int64_t kGranule = BlockTable::kGranule, kGranules = kTile / kGranule;
static_assert(kTile == BlockTable::kTile);
// So many entries of few blocks are met together: all that most tiles of such layouts have.
inline constexpr std::int64_t kMostTogether = 12;

// Entries of a tile of queries that are met together.
struct BlockGroup {
  const std::int32_t* entry;
  std::int64_t count;

  std::int64_t key(std::int64_t i) const { return BlockTable::granule(entry[i]) * kGranule; }
  bool sees(std::int64_t i, std::int64_t query_granule) const {
    return (entry[i] >> query_granule & 1) != 0;
  }
  // Whether it is the first, the last of the tile's granules of queries to see it.
  bool is_first(std::int64_t i, std::int64_t query_granule) const {
    return sees(i, query_granule) && BlockTable::bits(entry[i]) % (1 << query_granule) == 0;
  }
  bool is_last(std::int64_t i, std::int64_t query_granule) const {
    return sees(i, query_granule) && BlockTable::bits(entry[i]) >> (query_granule + 1) == 0;
  }
};

// Whether entries begin with a tile of keys of which the tile of queries at `first` sees what it
// sees of it in dense attention: that is a group of its own, so that a layout of all blocks has the
// bits of dense attention.
inline bool is_dense_tile(const std::int32_t* entry, std::int64_t count, bool causal,
                          std::int64_t first, std::int64_t queries) {
  const std::int64_t granule = BlockTable::granule(entry[0]);
  if (count < kGranules || granule % kGranules != 0) return false;
  const bool diagonal = causal && granule * kGranule == first;
  const auto all = static_cast<std::int32_t>((1 << (queries / kGranule)) - 1);
  for (std::int64_t i = 0; i < kGranules; ++i) {
    const std::int32_t wanted = diagonal ? all >> i << i : all;
    if (BlockTable::granule(entry[i]) != granule + i || BlockTable::bits(entry[i]) != wanted) {
      return false;
    }
  }
  return true;
}

// All entries of the tile whose first query is `first`, of the op's head.
inline std::span<const std::int32_t> entries_of(const AttentionMask& mask,
                                                const AttentionShape& shape, std::int64_t head,
                                                std::int64_t first) {
  const auto* words = mask.blocks.as<const std::int32_t>();
  const std::int64_t layout = mask.layouts == 1 ? 0 : head;
  const std::int32_t* start =
      words + layout * (BlockTable::tiles(shape.sequence) + 1) + first / kTile;
  return {words + start[0], words + start[1]};
}

// Calls f(key) for the granules of keys of `next`, the entries of the tile at `first`, that neither
// lie in it nor are among `now`.
template <class F>
void each_new_key(std::span<const std::int32_t> now, std::span<const std::int32_t> next,
                  std::int64_t first, F&& f) {
  const auto before = [](std::int32_t a, std::int32_t b) {
    return BlockTable::granule(a) < BlockTable::granule(b);
  };
  for (const std::int32_t entry : next) {
    const std::int64_t key = BlockTable::granule(entry) * kGranule;
    if (key / kTile * kTile == first) continue;
    if (!std::binary_search(now.begin(), now.end(), entry, before)) f(key);
  }
}

// Calls f(BlockGroup) for all entries of the tile whose first query is `first`, of the op's head.
template <class F>
void each_group(const AttentionMask& mask, const AttentionShape& shape, std::int64_t head,
                std::int64_t first, F&& f) {
  const std::span<const std::int32_t> entries = entries_of(mask, shape, head, first);
  const std::int64_t queries = std::min(kTile, shape.sequence - first);
  for (std::int64_t i = 0; i < std::ssize(entries);) {
    const std::int64_t left = std::ssize(entries) - i;
    std::int64_t count = 0;
    while (count < std::min(kMostTogether, left) &&
           !is_dense_tile(&entries[i + count], left - count, mask.is_causal(), first, queries)) {
      ++count;
    }
    if (count == 0) count = kGranules;
    f(BlockGroup{&entries[i], count});
    i += count;
  }
}

// Whether the tile of queries at `first` meets all that it sees in one group, which is no tile of
// dense attention.
inline bool meets_all_at_once(const AttentionMask& mask, const AttentionShape& shape,
                              std::int64_t head, std::int64_t first) {
  const std::span<const std::int32_t> entries = entries_of(mask, shape, head, first);
  if (entries.empty() || std::ssize(entries) > kMostTogether) return false;
  const std::int64_t queries = std::min(kTile, shape.sequence - first);
  bool at_once = false;
  each_group(mask, shape, head, first, [&](const BlockGroup& group) {
    at_once = group.count == std::ssize(entries) &&
              !is_dense_tile(group.entry, group.count, mask.is_causal(), first, queries);
  });
  return at_once;
}

// What a query of every head sees, as `arrays` arrays of rows of one head.
template <class T>
std::int64_t held_bytes(const AttentionMask& mask, const AttentionShape& shape,
                        std::int64_t arrays) {
  const auto row = shape.head_size * static_cast<std::int64_t>(sizeof(Arithmetic<T>));
  return mask.block_pairs / shape.sequence * arrays * row;
}

// For each granule of the tile of queries whose entries these are, one past the last that it sees.
inline std::array<const std::int32_t*, kGranules> ends_of(std::span<const std::int32_t> entries) {
  std::array<const std::int32_t*, kGranules> ends;
  for (std::int64_t r = 0; r < kGranules; ++r) {
    const std::int32_t* end = entries.data() + entries.size();
    while (end != entries.data() && (end[-1] >> r & 1) == 0) --end;
    ends[static_cast<std::size_t>(r)] = end;
  }
  return ends;
}

// The last granule of queries of the head that sees this one of keys; -1: none does.
inline std::int64_t last_to_see(const AttentionMask& mask, const AttentionShape& shape,
                                std::int64_t head, std::int64_t granule) {
  const auto* words = mask.blocks.as<const std::int32_t>();
  const std::int64_t layout = mask.layouts == 1 ? 0 : head;
  const std::int32_t* start = words +
                              (mask.layouts + layout) * (BlockTable::tiles(shape.sequence) + 1) +
                              granule / kGranules;
  for (std::int64_t i = start[1] - 1; i >= start[0]; --i) {
    if ((words[i] >> granule % kGranules & 1) != 0) return BlockTable::granule(words[i]);
  }
  return -1;
}

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

// to[width][kGranule] = factor * a granule of rows of one head, transposed.
template <class T, class A>
void load_transposed(const HeadColumns& head, std::int64_t row, std::int64_t width, A factor,
                     A* to) {
  constexpr std::int64_t kSide = kLanes<A>;
  const std::int64_t step = head.row_width;
  const T* from = head.matrix.as<const T>() + row * step + head.first;
  std::int64_t d = 0;
  for (; d + kSide <= width; d += kSide) {
    for (std::int64_t r = 0; r < kGranule; r += kSide) {
      Vector<A> block[kSide];
#pragma GCC unroll 16
      for (std::int64_t i = 0; i < kSide; ++i) {
        block[i] = factor * load_widened<A>(from + (r + i) * step + d);
      }
      transpose_round<1, A>(block);
#pragma GCC unroll 16
      for (std::int64_t i = 0; i < kSide; ++i) store_vector(to + (d + i) * kGranule + r, block[i]);
    }
  }
  for (; d < width; ++d) {
    for (std::int64_t r = 0; r < kGranule; ++r) {
      to[d * kGranule + r] = factor * widen<A>(from[r * step + d]);
    }
  }
}

// Rows [row, row + count) of heads that lie side by side, `columns` elements from the first of `of`
// on.
template <class T>
void add_rows(const HeadColumns& of, std::int64_t row, std::int64_t count, std::int64_t columns,
              RowsAhead& ahead) {
  constexpr auto kSize = static_cast<std::int64_t>(sizeof(T));
  ahead.add(of.matrix.as<const T>() + row * of.row_width + of.first, count, of.row_width * kSize,
            columns * kSize);
}

// How many pairs of granules these entries are.
inline std::int64_t pairs_of(std::span<const std::int32_t> entries) {
  std::int64_t pairs = 0;
  for (const std::int32_t entry : entries) {
    pairs += std::popcount(static_cast<std::uint32_t>(BlockTable::bits(entry)));
  }
  return pairs;
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

// f(row, column, two vectors) for those of the sum over all of left[kGranule, kGranule]
// right[kGranule, columns], whose rows are right_stride apart. part: on the diagonal lies the
// left one of the last (depth_to_row) or of the first (depth_from_row).
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
      sums.each_row([&](std::int64_t row, const Vector<A>(&values)[2]) { f(i + row, j, values); });
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
  const HeadRows<T>& rows;
  std::int64_t first;  // of the rows
  const A* factors;    // [kGranule], of what is put there

  [[gnu::always_inline]] void operator()(std::int64_t row, std::int64_t column,
                                         const Vector<A> (&more)[2]) const {
    A* at = waiting + row * padded + column;
    Vector<A> sums[2] = {more[0], more[1]};
    if (adds) sums[0] = load_vector(at) + sums[0], sums[1] = load_vector(at + kLanes<A>) + sums[1];
    if (ends) return rows.put(first + row, column, factors[row], sums);
    store_vector(at, sums[0]), store_vector(at + kLanes<A>, sums[1]);
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
