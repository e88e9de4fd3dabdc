// What the forward and the backward of attention over a layout of blocks share. A tile of 64
// queries meets the granules (16 keys) of its entries four at a time; products leave out the parts
// of 16 x 16 that no layout asks for, so that they cost nothing and what lies there touches
// nothing. Ownership: nothing. Threads: pure functions of their arguments.
#pragma once

#include <utility>

#include "backends/cpu/ops/attention_tiles.h"
#include "core/ops/block_table.h"

namespace zl::cpu {

inline constexpr std::int64_t kGranule = BlockTable::kGranule, kGranules = kTile / kGranule;
static_assert(kTile == BlockTable::kTile);

// Up to kGranules entries of a tile of queries.
struct BlockGroup {
  const std::int32_t* entry;
  std::int64_t count;

  std::int64_t key(std::int64_t i) const { return BlockTable::granule(entry[i]) * kGranule; }
  bool sees(std::int64_t i, std::int64_t query_granule) const {
    return (entry[i] >> query_granule & 1) != 0;
  }
};

// Calls f(BlockGroup) for all entries of the tile whose first query is `first`, of the op's head.
template <class F>
void each_group(const AttentionMask& mask, const AttentionShape& shape, std::int64_t head,
                std::int64_t first, F&& f) {
  const auto* words = mask.blocks.as<const std::int32_t>();
  const std::int64_t layout = mask.layouts == 1 ? 0 : head;
  const std::int32_t* start =
      words + layout * (BlockTable::tiles(shape.sequence) + 1) + first / kTile;
  for (std::int64_t i = start[0]; i < start[1]; i += kGranules) {
    f(BlockGroup{words + i, std::min(kGranules, start[1] - i)});
  }
}

// What a query of every head sees, as `arrays` arrays of rows of one head; and how much of it a
// processor's cache is counted on to hold.
template <class T>
std::int64_t held_bytes(const AttentionMask& mask, const AttentionShape& shape,
                        std::int64_t arrays) {
  const auto row = shape.head_size * static_cast<std::int64_t>(sizeof(Arithmetic<T>));
  return mask.block_pairs / shape.sequence * arrays * row;
}
inline constexpr std::int64_t kCacheBytes = std::int64_t{1} << 20;

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

// c[rows, columns] (+)= a[rows, depth] b[depth, columns], rows and columns multiples of a granule
// or of a padded width; b and c have rows of their own lengths. part: on the diagonal lies the last
// granule of the depth (depth_to_row) or the first (depth_from_row), of a single granule of rows.
template <class A>
void multiply_part(const LeftOperand<A>& a, std::int64_t rows, const A* b, std::int64_t b_stride,
                   std::int64_t depth, std::int64_t columns, A* c, std::int64_t c_stride,
                   bool accumulate, Part part = Part::all) {
  static_assert(kGranule % kLanes<A> == 0 && kGranule % kTileRows == 0);
  const auto tile = [&]<int kVectors>(std::int64_t i, std::int64_t j) {
    const std::int64_t from = part == Part::depth_from_row ? i : 0;
    const std::int64_t to = part == Part::depth_to_row ? depth - kGranule + i + kTileRows : depth;
    multiply_tile<A, kTileRows, kVectors>(
        {a.data + i * a.row_stride + from * a.k_stride, a.row_stride, a.k_stride},
        b + from * b_stride + j, b_stride, to - from, c + i * c_stride + j, c_stride, accumulate);
  };
  for (std::int64_t j = 0; j < columns; j += kTileColumns<A>) {
    const bool half = columns - j < kTileColumns<A>;
    for (std::int64_t i = 0; i < rows; i += kTileRows) {
      half ? tile.template operator()<1>(i, j) : tile.template operator()<2>(i, j);
    }
  }
}

}  // namespace zl::cpu
