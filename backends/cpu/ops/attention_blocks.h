// What the forward and the backward of attention over a layout of blocks share. A tile of 64
// queries meets the granules (16 keys) of its entries some at a time; products leave out the parts
// of 16 x 16 that no layout asks for, so that they cost nothing and what lies there touches
// nothing. Ownership: nothing. Threads: pure functions of their arguments.
#pragma once

#include <algorithm>
#include <limits>
#include <span>
#include <utility>

#include "backends/cpu/ops/attention_tiles.h"
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

// What a query of every head sees, as `arrays` arrays of rows of one head.
template <class T>
std::int64_t held_bytes(const AttentionMask& mask, const AttentionShape& shape,
                        std::int64_t arrays) {
  const auto row = shape.head_size * static_cast<std::int64_t>(sizeof(Arithmetic<T>));
  return mask.block_pairs / shape.sequence * arrays * row;
}

// Calls f(tile) for each tile of keys of which no query after those of the tile at `first` sees
// one.
template <class F>
void each_last_tile(const AttentionMask& mask, const AttentionShape& shape, std::int64_t head,
                    std::int64_t first, F&& f) {
  const auto* words = mask.blocks.as<const std::int32_t>();
  const std::int64_t starts = BlockTable::tiles(shape.sequence) + 1;
  const std::int64_t layout = mask.layouts == 1 ? 0 : head;
  const std::int32_t* of_keys = words + (mask.layouts + layout) * starts;
  std::int64_t before = -1;
  each_group(mask, shape, head, first, [&](const BlockGroup& group) {
    for (std::int64_t i = 0; i < group.count; ++i) {
      const std::int64_t tile = group.key(i) / kTile;
      const std::int32_t last = BlockTable::granule(words[of_keys[tile + 1] - 1]);
      if (tile != std::exchange(before, tile) && last * kGranule / kTile == first / kTile) f(tile);
    }
  });
}

// Keys and values of a group's granules, [granule][key][padded], of a sequence whose first row this
// is.
template <class T, class A>
void load_granules(const QkvViews& qkv, std::int64_t first_row, std::int64_t kv_head,
                   std::int64_t width, std::int64_t padded, const BlockGroup& group, A* keys,
                   A* values) {
  for (std::int64_t i = 0; i < group.count; ++i) {
    const std::int64_t row = first_row + group.key(i), at = i * kGranule * padded;
    load_rows<T>(head_columns(qkv.k, kv_head, width), row, kGranule, width, padded, A{1},
                 keys + at);
    load_rows<T>(head_columns(qkv.v, kv_head, width), row, kGranule, width, padded, A{1},
                 values + at);
  }
}

// Calls f(begin, end) for each run of indices below `count` for which seen(index).
template <class Seen, class F>
void each_run(std::int64_t count, const Seen& seen, F&& f) {
  for (std::int64_t begin = 0; begin < count;) {
    std::int64_t end = begin;
    while (end < count && seen(end)) ++end;
    if (end > begin) f(begin, end);
    begin = end + 1;
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

// sums += a[.., depth] b[depth, ..]; meanwhile a line of `ahead` is brought nearer at every step.
template <class A, class Sums>
[[gnu::always_inline]] inline void add_product(const LeftOperand<A>& a, const A* b,
                                               std::int64_t b_stride, std::int64_t depth,
                                               RowsAhead& ahead, Sums& sums) {
  for (std::int64_t k = 0; k < depth;) {
    const LeftOperand<A> left{a.data + k * a.k_stride, a.row_stride, a.k_stride};
    const RowsAhead::Lines lines = ahead.take(depth - k);
    if (lines.count == 0) return sums.add(left, b + k * b_stride, b_stride, depth - k);
    sums.template add<true>(left, b + k * b_stride, b_stride, lines.count, lines.first);
    k += lines.count;
  }
}

// c[rows, columns] (+)= a[rows, depth] b[depth, columns], rows and columns multiples of a granule
// or of a padded width; b and c have rows of their own lengths. part: on the diagonal lies the
// first granule of the depth (depth_from_row), of a single granule of rows. Meanwhile
// a line of `ahead` is brought nearer at every step of the depth.
template <class A>
void multiply_part(const LeftOperand<A>& a, std::int64_t rows, const A* b, std::int64_t b_stride,
                   std::int64_t depth, std::int64_t columns, A* c, std::int64_t c_stride,
                   bool accumulate, RowsAhead& ahead, Part part = Part::all) {
  static_assert(kGranule % kLanes<A> == 0 && kGranule % (2 * kTileRows) == 0);
  const auto tile = [&]<int kRows, int kVectors>(std::int64_t i, std::int64_t j) {
    const std::int64_t from = part == Part::depth_from_row ? i : 0;
    TileSums<A, kRows, kVectors> sums;
    add_product({a.data + i * a.row_stride + from * a.k_stride, a.row_stride, a.k_stride},
                b + from * b_stride + j, b_stride, depth - from, ahead, sums);
    sums.store(c + i * c_stride + j, c_stride, accumulate);
  };
  for (std::int64_t j = 0; j < columns;) {
    if (columns - j < kTileColumns<A>) {  // twice the rows, so that as many sums are under way
      for (std::int64_t i = 0; i < rows; i += 2 * kTileRows) {
        tile.template operator()<2 * kTileRows, 1>(i, j);
      }
      return;
    }
    for (std::int64_t i = 0; i < rows; i += kTileRows) {
      tile.template operator()<kTileRows, 2>(i, j);
    }
    j += kTileColumns<A>;
  }
}

// Two factors of a sum of products: 16 columns of the left one, 16 rows of the right one.
template <class A>
struct GranuleFactors {
  const A *left, *right;
};

// c[kGranule, columns] (+)= the sum over all of left[kGranule, kGranule]^T right[kGranule,
// columns], where left's rows are left_stride apart, the others' `columns`. diagonal: of the last
// one's left, column i has the rows up to i.
template <class A>
void multiply_granules(std::span<const GranuleFactors<A>> all, std::int64_t left_stride,
                       std::int64_t columns, bool diagonal, A* c, bool accumulate,
                       RowsAhead& ahead) {
  for (std::int64_t j = 0; j < columns; j += kTileColumns<A>) {
    for (std::int64_t i = 0; i < kGranule; i += kTileRows) {
      TileSums<A, kTileRows, 2> sums;
      const auto add = [&](const GranuleFactors<A>& each, std::int64_t depth) {
        add_product({each.left + i, 1, left_stride}, each.right + j, columns, depth, ahead, sums);
      };
      for (const GranuleFactors<A>& each : all.first(all.size() - 1)) add(each, kGranule);
      add(all.back(), diagonal ? i + kTileRows : kGranule);
      sums.store(c + i * columns + j, columns, accumulate);
    }
  }
}

// Where keys [0, kGranule) x queries [0, kGranule) of values[key][query] lie on the diagonal: those
// of keys behind the query become `hidden`.
template <class A>
void hide_behind_diagonal(A* values, std::int64_t stride, A hidden) {
  Vector<A> place;
  for (int lane = 0; lane < kLanes<A>; ++lane) place[lane] = static_cast<A>(lane);
  for (std::int64_t k = 1; k < kGranule; ++k) {
    for (std::int64_t lane = 0; lane < kGranule; lane += kLanes<A>) {
      A* at = values + k * stride + lane;
      const Vector<A> behind = broadcast(static_cast<A>(k - lane));
      store_vector(at, place < behind ? broadcast(hidden) : load_vector(at));
    }
  }
}

}  // namespace zl::cpu
