#include "core/ops/block_table.h"

#include <algorithm>
#include <limits>

#include "core/base/error.h"

namespace zl {
namespace {

constexpr std::int64_t kGranulePairs = BlockTable::kGranule * BlockTable::kGranule;
constexpr std::int64_t kDiagonalPairs = BlockTable::kGranule * (BlockTable::kGranule + 1) / 2;

// The entries of one layout, tile by tile.
struct Entries {
  std::vector<std::vector<std::int32_t>> queries, keys;
  std::int64_t pairs = 0;
};

// Granules come in ascending order of `granule` for each tile.
void add(std::vector<std::int32_t>& tile, std::int64_t granule, std::int64_t bit) {
  const auto entry = static_cast<std::int32_t>(granule << BlockTable::kBits);
  if (tile.empty() || BlockTable::granule(tile.back()) != granule) tile.push_back(entry);
  tile.back() |= 1 << bit;
}

// Calls f(granule of queries, granule of keys) for all that are seen, by queries, then by keys.
template <class F>
void each_granule(const BlockLayout& layout, bool causal, F&& f) {
  const std::int64_t width = layout.block / BlockTable::kGranule;
  const std::int64_t granules = layout.sequence() / BlockTable::kGranule;
  for (std::int64_t query = 0; query < granules; ++query) {
    for (const std::int32_t column : layout.rows[static_cast<std::size_t>(query / width)]) {
      for (std::int64_t key = column * width; key < (column + 1) * width; ++key) {
        if (!causal || key <= query) f(query, key);
      }
    }
  }
}

Entries entries_of(const BlockLayout& layout, bool causal) {
  const auto tiles = static_cast<std::size_t>(BlockTable::tiles(layout.sequence()));
  Entries all{std::vector<std::vector<std::int32_t>>(tiles),
              std::vector<std::vector<std::int32_t>>(tiles)};
  std::vector<std::vector<std::int32_t>> single(tiles);  // one entry for each granule of queries
  each_granule(layout, causal, [&](std::int64_t query, std::int64_t key) {
    const std::int64_t bit = query % BlockTable::kBits;
    single[static_cast<std::size_t>(query / BlockTable::kBits)].push_back(
        static_cast<std::int32_t>((key << BlockTable::kBits) + (1 << bit)));
    add(all.keys[static_cast<std::size_t>(key / BlockTable::kBits)], query,
        key % BlockTable::kBits);
    all.pairs += causal && key == query ? kDiagonalPairs : kGranulePairs;
  });
  for (std::size_t tile = 0; tile < tiles; ++tile) {
    std::sort(single[tile].begin(), single[tile].end());
    for (const std::int32_t entry : single[tile]) {
      std::vector<std::int32_t>& merged = all.queries[tile];
      const bool same =
          !merged.empty() && BlockTable::granule(merged.back()) == BlockTable::granule(entry);
      if (!same) {
        merged.push_back(entry);
      } else {
        merged.back() |= entry;
      }
    }
  }
  return all;
}

// Of the tiles that have more entries than a part.
std::int64_t parts_of(const std::vector<std::vector<std::int32_t>>& tiles, std::int64_t most) {
  std::int64_t parts = 0;
  for (const auto& tile : tiles) {
    const auto entries = static_cast<std::int64_t>(tile.size());
    if (entries > most) parts += (entries + most - 1) / most;
  }
  return parts;
}

// The entries of a layout's tiles behind the others; where they begin, from word `start` on; the
// parts from word `part` on.
void append(BlockTable& table, const std::vector<std::vector<std::int32_t>>& tiles,
            std::int64_t start, std::int64_t part) {
  std::vector<std::int32_t>& words = table.words;
  const auto write = [&](std::int64_t& at, std::size_t value) {
    words[static_cast<std::size_t>(at++)] = static_cast<std::int32_t>(value);
  };
  const auto most = static_cast<std::size_t>(table.parts.most);
  for (std::size_t tile = 0; tile < tiles.size(); ++tile) {
    const std::size_t first = words.size();
    write(start, first);
    words.insert(words.end(), tiles[tile].begin(), tiles[tile].end());
    ZL_CHECK(words.size() <= std::numeric_limits<std::int32_t>::max(),
             "a table of blocks has at most 2^31 entries");
    if (tiles[tile].size() <= most) continue;
    for (std::size_t begin = first; begin < words.size(); begin += most) {
      write(part, tile), write(part, begin), write(part, std::min(begin + most, words.size()));
    }
  }
  write(start, words.size());
}

}  // namespace

std::int64_t BlockLayout::active() const {
  std::int64_t sum = 0;
  for (const auto& row : rows) sum += static_cast<std::int64_t>(row.size());
  return sum;
}

BlockTable block_table(std::span<const BlockLayout> layouts, bool causal, std::int64_t most) {
  ZL_CHECK(!layouts.empty(), "a table of blocks has a layout");
  const std::int64_t sequence = layouts.front().sequence();
  std::vector<Entries> entries;
  BlockTable table;
  table.layouts = static_cast<std::int64_t>(layouts.size());
  table.parts.most = most == 0 ? BlockTable::entries_of_part(sequence) : most;
  for (const BlockLayout& layout : layouts) {
    ZL_CHECK(layout.sequence() == sequence && layout.block % BlockTable::kGranule == 0,
             "layouts of one table are of one sequence, blocks of whole granules");
    entries.push_back(entries_of(layout, causal));
    table.pairs += entries.back().pairs;
    table.parts.queries =
        std::max(table.parts.queries, parts_of(entries.back().queries, table.parts.most));
    table.parts.keys = std::max(table.parts.keys, parts_of(entries.back().keys, table.parts.most));
  }
  table.words.resize(
      static_cast<std::size_t>(BlockTable::header(table.layouts, sequence, table.parts)), -1);
  const std::int64_t starts = BlockTable::tiles(sequence) + 1;
  const std::int64_t query_parts = BlockTable::query_parts(table.layouts, sequence);
  const std::int64_t key_parts = BlockTable::key_parts(table.layouts, sequence, table.parts);
  for (std::int64_t i = 0; i < table.layouts; ++i) {
    const Entries& own = entries[static_cast<std::size_t>(i)];
    append(table, own.queries, i * starts,
           query_parts + i * BlockTable::kPart * table.parts.queries);
    append(table, own.keys, (table.layouts + i) * starts,
           key_parts + i * BlockTable::kPart * table.parts.keys);
  }
  return table;
}

}  // namespace zl
