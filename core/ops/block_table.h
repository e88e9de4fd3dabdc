// Block-sparse attention's layout of blocks, and the table of it that kernels walk.
// Ownership: values. Threads: pure functions of their arguments.
#pragma once

#include <algorithm>
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

// A tile that many granules meet is work for many blocks of threads: its entries are cut into
// parts.
struct TileParts {
  std::int64_t most = 0;               // entries of a part: tiles with more are cut
  std::int64_t queries = 0, keys = 0;  // parts of a layout's query tiles and key tiles, none: 0

  bool operator==(const TileParts&) const = default;
};

// For kernels, blocks of any size are granules of 16 x 16 pairs: of each tile of 64 queries the
// granules of keys that one of its queries sees, and of each tile of 64 keys those of queries.
//   words = starts of query tiles [layouts][tiles + 1], of key tiles [layouts][tiles + 1],
//           parts of query tiles [layouts][parts][3], of key tiles [layouts][parts][3], entries;
//   a start is the index of the tile's first entry among the words, the next one its end;
//   an entry is granule * 16 + the bits of the tile's four granules that see it, ascending;
//   a part is its tile and where its entries begin and end among the words, the parts of a tile one
//   after the other; a layout of fewer parts than another ends with parts of tile -1.
// Bytes by the blocks that exist: at most 8 for each of their granules, 8 for each tile and layout,
// 12 for each part.
struct BlockTable {
  static constexpr std::int64_t kGranule = 16, kTile = 64, kBits = kTile / kGranule;
  static constexpr std::int64_t kPart = 3;  // words of a part

  std::vector<std::int32_t> words;
  std::int64_t layouts = 0;
  std::int64_t pairs = 0;  // (query, key) that are seen, over all layouts
  TileParts parts;

  static constexpr std::int64_t tiles(std::int64_t sequence) {
    return (sequence + kTile - 1) / kTile;
  }
  // Words before the entries.
  static constexpr std::int64_t header(std::int64_t layouts, std::int64_t sequence,
                                       const TileParts& parts) {
    return key_parts(layouts, sequence, parts) + layouts * kPart * parts.keys;
  }
  // Where the parts of the first layout begin.
  static constexpr std::int64_t query_parts(std::int64_t layouts, std::int64_t sequence) {
    return 2 * layouts * (tiles(sequence) + 1);
  }
  static constexpr std::int64_t key_parts(std::int64_t layouts, std::int64_t sequence,
                                          const TileParts& parts) {
    return query_parts(layouts, sequence) + layouts * kPart * parts.queries;
  }
  // Entries of a part: a 16th of a long sequence, so that a tile that all others meet keeps 16
  // blocks of threads busy; never so few that its sum is more to write than its entries are to
  // read.
  static constexpr std::int64_t entries_of_part(std::int64_t sequence) {
    constexpr std::int64_t kLeast = 64, kShares = 16;
    return std::max(kLeast, sequence / kGranule / kShares);
  }
  static constexpr std::int32_t granule(std::int32_t entry) { return entry / (1 << kBits); }
  static constexpr std::int32_t bits(std::int32_t entry) { return entry % (1 << kBits); }
};

// Of layouts of one size and number of blocks, whose blocks are multiples of a granule. causal: of
// blocks on the diagonal only keys up to the query's are seen, of those above it none. most:
// entries of a part; 0: entries_of_part.
BlockTable block_table(std::span<const BlockLayout> layouts, bool causal, std::int64_t most = 0);

}  // namespace zl
