// Block-sparse attention's layout of blocks, and the table of it that kernels walk.
// Ownership: values. Threads: pure functions of their arguments.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace zl {

// Which blocks of `block` keys each row of as many queries sees: ascending columns of every row.
struct BlockLayout {
  std::int64_t block = 16;
  std::vector<std::vector<std::int32_t>> rows;

  std::int64_t sequence() const { return block * static_cast<std::int64_t>(rows.size()); }
  std::int64_t active() const;  // blocks that exist

  bool operator==(const BlockLayout&) const = default;
};

// For kernels, blocks of any size are granules of 16 x 16 pairs: of each tile of 64 queries the
// granules of keys that one of its queries sees, and of each tile of 64 keys those of queries.
//   words = starts of query tiles [layouts][tiles + 1], of key tiles [layouts][tiles + 1], entries;
//   a start is the index of the tile's first entry among the words, the next one its end;
//   an entry is granule * 16 + the bits of the tile's four granules that see it, ascending.
// Bytes by the blocks that exist: at most 8 for each of their granules, 8 for each tile and layout.
struct BlockTable {
  static constexpr std::int64_t kGranule = 16, kTile = 64, kBits = kTile / kGranule;

  std::vector<std::int32_t> words;
  std::int64_t layouts = 0;
  std::int64_t pairs = 0;  // (query, key) that are seen, over all layouts

  static constexpr std::int64_t tiles(std::int64_t sequence) {
    return (sequence + kTile - 1) / kTile;
  }
  // Words before the entries.
  static constexpr std::int64_t header(std::int64_t layouts, std::int64_t sequence) {
    return 2 * layouts * (tiles(sequence) + 1);
  }
  static constexpr std::int32_t granule(std::int32_t entry) { return entry / (1 << kBits); }
  static constexpr std::int32_t bits(std::int32_t entry) { return entry % (1 << kBits); }
};

// Of layouts of one size and number of blocks, whose blocks are multiples of a granule. causal: of
// blocks on the diagonal only keys up to the query's are seen, of those above it none.
BlockTable block_table(std::span<const BlockLayout> layouts, bool causal);

}  // namespace zl
