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

// Places for what is kept of granules of keys of a group, from the first granule of queries that
// sees one to the last. Few are taken at once; the one freed last, which the nearest cache still
// holds, is taken first.
class GranulePlaces {
 public:
  GranulePlaces() {
    for (std::int64_t i = 0; i < kMostTogether; ++i) free_[i] = kMostTogether - 1 - i;
  }
  void take(std::int64_t i) { of_[i] = free_[--left_]; }
  void give_back(std::int64_t i) { free_[left_++] = of_[i]; }
  std::int64_t of(std::int64_t i) const { return of_[i]; }

 private:
  std::int64_t free_[kMostTogether], of_[kMostTogether] = {}, left_ = kMostTogether;
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

}  // namespace zl::cpu
