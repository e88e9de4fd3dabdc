// Layouts of block-sparse attention: DeepSpeed's golden rows, closed forms of how many blocks there
// are, the table that kernels walk, what does not go together.
#include "core/model/block_layouts.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <utility>

#include "core/base/error.h"

namespace zl {
namespace {

using Rows = std::vector<std::string>;

SparseAttentionConfig config_of(SparseMode mode, bool bidirectional = true) {
  SparseAttentionConfig config;
  config.mode = mode;
  config.bidirectional = bidirectional;
  return config;
}

std::vector<BlockLayout> build(const SparseAttentionConfig& config, std::int64_t blocks,
                               LayoutsOf of = {}) {
  of.sequence = blocks * config.block;
  return block_layouts(config, of);
}

Rows drawn(const BlockLayout& layout) {
  Rows rows;
  for (const auto& row : layout.rows) {
    std::string line(layout.rows.size(), '.');
    for (const std::int32_t c : row) line[static_cast<std::size_t>(c)] = '#';
    rows.push_back(line);
  }
  return rows;
}

Rows drawn(const SparseAttentionConfig& config, std::int64_t blocks) {
  return drawn(build(config, blocks).front());
}

std::int64_t active(const SparseAttentionConfig& config, std::int64_t blocks) {
  return build(config, blocks).front().active();
}

// What DeepSpeed 0.19 builds for this many blocks.
TEST(BlockLayouts, AreDeepSpeeds) {
  EXPECT_EQ(drawn(config_of(SparseMode::fixed), 10),
            (Rows{"####...#.#", "####...#.#", "####...#.#", "####...#.#", "...#####.#",
                  "...#####.#", "...#####.#", "...#####.#", "...#...###", "...#...###"}));
  EXPECT_EQ(drawn(config_of(SparseMode::fixed, false), 10),
            (Rows{"#.........", "##........", "###.......", "####......", "...##.....",
                  "...###....", "...####...", "...#####..", "...#...##.", "...#...###"}));
  EXPECT_EQ(drawn(config_of(SparseMode::bslongformer), 8),
            (Rows{"########", "###.....", "####....", "#.###...", "#..###..", "#...###.",
                  "#....###", "#.....##"}));
  SparseAttentionConfig variable = config_of(SparseMode::variable);
  variable.local_window_blocks = {2, 4};
  EXPECT_EQ(drawn(variable, 8), (Rows{"##......", "##......", "#.####..", "#.####..", "#.####..",
                                      "#.####..", "#.....##", "#.....##"}));
}

// The tutorial's example: each head another column of the window.
TEST(BlockLayouts, OfHeadsHaveTheirPatterns) {
  SparseAttentionConfig config = config_of(SparseMode::fixed, false);
  config.different_layout_per_head = true;
  config.num_different_global_patterns = 4;
  const auto layouts = build(config, 8, {.first_head = 1, .heads = 5});
  ASSERT_EQ(layouts.size(), 5u);
  EXPECT_EQ(drawn(layouts[0])[7], "..#.####");  // head 1
  EXPECT_EQ(drawn(layouts[1])[7], ".#..####");
  EXPECT_EQ(drawn(layouts[2])[7], "#...####");
  EXPECT_EQ(drawn(layouts[3])[7], "...#####");  // head 4 as head 0
  EXPECT_EQ(layouts[4], layouts[0]);
  config.different_layout_per_head = false;
  config.num_different_global_patterns = 1;
  EXPECT_EQ(build(config, 8, {.first_head = 1, .heads = 5}).size(), 1u);
}

// DeepSpeed's layouts (ops/sparse_attention/sparsity_config.py), counted by hand.
TEST(BlockLayouts, CountAsTheClosedFormsSay) {
  for (const std::int64_t nb : {64, 128, 256}) {
    for (const auto& [local, globals] : {std::pair{4, 1}, std::pair{8, 2}, std::pair{16, 1}}) {
      SparseAttentionConfig fixed = config_of(SparseMode::fixed);
      fixed.num_local_blocks = local;
      fixed.num_global_blocks = globals;
      const std::int64_t n = nb / local, l = local, g = globals;
      EXPECT_EQ(active(fixed, nb), nb * l + nb * n * g - n * l * g);
      fixed.bidirectional = false;
      EXPECT_EQ(active(fixed, nb), n * l * (l + 1) / 2 + g * l * n * (n - 1) / 2);
    }
    for (const std::int64_t w : {3, 5}) {
      SparseAttentionConfig sliding = config_of(SparseMode::local_sliding, false);
      sliding.num_sliding_window_blocks = w;
      const std::int64_t k = w / 2;
      EXPECT_EQ(active(sliding, nb), nb * (k + 1) - k * (k + 1) / 2);
      sliding.bidirectional = true;
      EXPECT_EQ(active(sliding, nb), nb * (2 * k + 1) - k * (k + 1));
      SparseAttentionConfig longformer = config_of(SparseMode::bslongformer, false);
      longformer.num_sliding_window_blocks = w;
      std::int64_t expected = 1 + nb - 1;  // one global block
      for (std::int64_t i = 1; i < nb; ++i) expected += std::min(k, i - 1) + 1;
      EXPECT_EQ(active(longformer, nb), expected);
    }
  }
  EXPECT_EQ(active(config_of(SparseMode::fixed), 1024), 265216);
  EXPECT_EQ(active(config_of(SparseMode::fixed, false), 1024), 133120);
  EXPECT_EQ(active(config_of(SparseMode::bslongformer), 1024), 5114);
  EXPECT_EQ(active(config_of(SparseMode::local_sliding, false), 4096), 8191);
}

SparseAttentionConfig bigbird(bool bidirectional, std::int64_t random = 1) {
  SparseAttentionConfig config = config_of(SparseMode::bigbird, bidirectional);
  config.num_random_blocks = random;
  return config;
}

// Density .585 % at 1,024 blocks, as expected of one random block a row.
TEST(BlockLayouts, RandomBlocksAreOfSeedLayerHeadAndRowOnly) {
  const std::int64_t without = active(bigbird(true, 0), 1024);
  EXPECT_NEAR(static_cast<double>(active(bigbird(true), 1024) - without), 1024 * (1 - 0.0049), 12);
  SparseAttentionConfig config = bigbird(false, 2);
  config.different_layout_per_head = true;
  const auto all = build(config, 64, {.heads = 4});
  EXPECT_EQ(build(config, 64, {.first_head = 2, .heads = 2}),
            (std::vector<BlockLayout>{all[2], all[3]}));  // a rank's heads
  EXPECT_NE(all[0], all[1]);
  EXPECT_NE(build(config, 64, {.heads = 4, .layer = 1})[0], all[0]);
  SparseAttentionConfig seeded = config;
  seeded.seed = 9;
  EXPECT_NE(build(seeded, 64, {.heads = 4})[0], all[0]);
  EXPECT_TRUE(differs_by_layer(config));
  EXPECT_FALSE(differs_by_layer(bigbird(false, 0)));
  // Different blocks in every row: two more than without, where the window leaves room for them.
  const auto plain = build(bigbird(true, 0), 64).front(),
             drawn_two = build(bigbird(true, 2), 64)[0];
  for (std::size_t row = 1; row < 64; ++row) {
    EXPECT_LE(drawn_two.rows[row].size(), plain.rows[row].size() + 2);
    EXPECT_TRUE(std::includes(drawn_two.rows[row].begin(), drawn_two.rows[row].end(),
                              plain.rows[row].begin(), plain.rows[row].end()));
  }
}

// All of them, causal: every row sees its own block and none after it.
TEST(BlockLayouts, ThatAreUnidirectionalEndWithTheDiagonal) {
  for (const SparseMode mode : {SparseMode::fixed, SparseMode::variable, SparseMode::bigbird,
                                SparseMode::bslongformer, SparseMode::local_sliding}) {
    SparseAttentionConfig config = config_of(mode, false);
    config.num_random_blocks = 3;
    for (const std::int64_t nb : {3, 4, 10, 33}) {
      config.num_global_blocks = mode == SparseMode::bigbird ? 2 : 1;
      const BlockLayout layout = build(config, nb).front();
      for (std::size_t row = 0; row < layout.rows.size(); ++row) {
        ASSERT_FALSE(layout.rows[row].empty());
        EXPECT_EQ(layout.rows[row].back(), static_cast<std::int32_t>(row))
            << name_of(mode) << ", " << nb << " blocks, row " << row;
      }
    }
  }
}

TEST(BlockLayouts, TakeTheUsersRows) {
  SparseAttentionConfig config = config_of(SparseMode::layout, false);
  config.rows = {"##.", "##.", "#.#"};
  EXPECT_EQ(drawn(config, 3), (Rows{"#..", "##.", "#.#"}));
  config.bidirectional = true;
  EXPECT_EQ(drawn(config, 3), config.rows);
}

// Every pair of the table against the layout, from both sides.
TEST(BlockTable, HasTheGranulesOfTheLayoutFromBothSides) {
  for (const std::int64_t block : {16, 32, 48, 64, 112, 128}) {
    for (const bool causal : {false, true}) {
      SparseAttentionConfig config = bigbird(!causal, 2);
      config.block = block;
      config.different_layout_per_head = true;
      const std::int64_t nb = 7;
      const auto layouts = build(config, nb, {.heads = 2});
      const BlockTable table = block_table(layouts, causal);
      const std::int64_t sequence = block * nb, tiles = BlockTable::tiles(sequence);
      std::int64_t pairs = 0;
      for (std::size_t layout = 0; layout < 2; ++layout) {
        const auto read = [&](bool keys) {
          std::set<std::pair<std::int64_t, std::int64_t>> all;  // granules of query and key
          const std::size_t starts =
              ((keys ? 2 : 0) + layout) * static_cast<std::size_t>(tiles + 1);
          for (std::int64_t tile = 0; tile < tiles; ++tile) {
            const std::size_t at = starts + static_cast<std::size_t>(tile);
            for (std::int32_t i = table.words[at]; i < table.words[at + 1]; ++i) {
              const std::int32_t entry = table.words[static_cast<std::size_t>(i)];
              for (int bit = 0; bit < 4; ++bit) {
                if ((BlockTable::bits(entry) >> bit & 1) == 0) continue;
                const std::int64_t row = tile * 4 + bit, column = BlockTable::granule(entry);
                all.emplace(keys ? column : row, keys ? row : column);
              }
            }
          }
          return all;
        };
        const auto by_query = read(false);
        EXPECT_EQ(by_query, read(true));
        const std::int64_t width = block / 16;
        for (std::int64_t q = 0; q < sequence / 16; ++q) {
          const auto& row = layouts[layout].rows[static_cast<std::size_t>(q / width)];
          for (std::int64_t k = 0; k < sequence / 16; ++k) {
            const bool on =
                std::count(row.begin(), row.end(), k / width) > 0 && (!causal || k <= q);
            EXPECT_EQ(by_query.contains({q, k}), on) << q << ", " << k;
            if (on) pairs += causal && q == k ? 136 : 256;
          }
        }
      }
      EXPECT_EQ(table.pairs, pairs);
    }
  }
}

// Tiles with more entries than a part are cut, from first to last, the others are not.
TEST(BlockTable, CutsTheTilesThatManyMeet) {
  constexpr std::int64_t kMost = 3, kBlocks = 12, kBlock = 32;
  SparseAttentionConfig config = bigbird(true, 2);
  config.block = kBlock;
  config.different_layout_per_head = true;
  const BlockTable table = block_table(build(config, kBlocks, {.heads = 2}), false, kMost);
  const std::int64_t sequence = kBlock * kBlocks, tiles = BlockTable::tiles(sequence);
  const auto word = [&](std::int64_t i) { return table.words[static_cast<std::size_t>(i)]; };
  for (const bool keys : {false, true}) {
    const std::int64_t parts = keys ? table.parts.keys : table.parts.queries;
    std::int64_t at = keys ? BlockTable::key_parts(2, sequence, table.parts)
                           : BlockTable::query_parts(2, sequence);
    bool pads = false;
    for (std::int64_t layout = 0; layout < 2; ++layout) {
      const std::int64_t last = at + BlockTable::kPart * parts;
      for (std::int64_t tile = 0; tile < tiles; ++tile) {
        const std::int64_t start = ((keys ? 2 : 0) + layout) * (tiles + 1) + tile;
        std::int64_t begin = word(start);
        const std::int64_t end = word(start + 1);
        if (end - begin <= kMost) continue;
        for (; begin < end; at += BlockTable::kPart, begin += kMost) {
          ASSERT_LT(at, last);
          EXPECT_EQ(word(at), tile);
          EXPECT_EQ(word(at + 1), begin);
          EXPECT_EQ(word(at + 2), std::min(begin + kMost, end));
        }
      }
      for (; at < last; at += BlockTable::kPart, pads = true) EXPECT_EQ(word(at), -1);
    }
    EXPECT_GT(parts, 0);
    EXPECT_TRUE(pads) << "the layouts have as many parts: nothing is padded";
  }
}

// A 16th of a long sequence; a short one is not cut.
TEST(BlockTable, CutsAGlobalBlockOfLongSequencesInto16) {
  SparseAttentionConfig config = bigbird(false, 1);
  config.block = 64;
  const auto parts = [&](std::int64_t sequence) {
    return block_table(build(config, sequence / 64), true).parts;
  };
  EXPECT_EQ(parts(1024), (TileParts{64, 0, 0}));
  EXPECT_EQ(parts(16384), (TileParts{64, 0, 16}));
  EXPECT_EQ(parts(65536), (TileParts{256, 0, 16}));
}

// Bytes grow with the blocks, not with the square of the length.
TEST(BlockTable, IsAsLongAsTheBlocksThatExist) {
  SparseAttentionConfig config = config_of(SparseMode::local_sliding, false);
  const auto words = [&](std::int64_t nb) {
    return static_cast<double>(block_table(build(config, nb), true).words.size());
  };
  EXPECT_NEAR(words(4096) / words(1024), 4, 0.01);
  EXPECT_LT(words(4096), 3 * 8191);
}

std::string conflict(const SparseAttentionConfig& config, bool causal = true,
                     std::int64_t sequence = 256) {
  return sparse_conflict(config, causal, sequence);
}

TEST(SparseConflict, NamesTheKeyTheValueAndTheFix) {
  EXPECT_EQ(conflict(SparseAttentionConfig{}), "");
  EXPECT_EQ(conflict(config_of(SparseMode::fixed)),
            "sparse_attention.attention: \"bidirectional\" would let a decoder see the tokens that "
            "it predicts; write \"attention\": \"unidirectional\"");
  EXPECT_EQ(conflict(config_of(SparseMode::fixed), false), "");
  const SparseAttentionConfig good = config_of(SparseMode::fixed, false);
  EXPECT_EQ(conflict(good), "");
  EXPECT_EQ(conflict(good, true, 250),
            "sparse_attention.block: 16 does not divide the sequence length 250; use 240 or 256");
  EXPECT_EQ(conflict(good, true, 10),
            "sparse_attention.block: 16 does not divide the sequence length 10; use 16 or 16");
  const auto changed = [&](auto&& change) {
    SparseAttentionConfig config = good;
    change(config);
    return conflict(config);
  };
  using C = SparseAttentionConfig;
  EXPECT_EQ(changed([](C& c) { c.block = 24; }),
            "sparse_attention.block: 24 is not a multiple of 16 from 16 to 128");
  EXPECT_EQ(changed([](C& c) { c.num_global_blocks = 3; }),
            "sparse_attention.num_local_blocks: 4 is no multiple of num_global_blocks, 3");
  EXPECT_EQ(changed([](C& c) { c.num_different_global_patterns = 2; }),
            "sparse_attention.num_different_global_patterns: 2 patterns need "
            "different_layout_per_head: true");
  EXPECT_EQ(changed([](C& c) {
              c.different_layout_per_head = true;
              c.num_different_global_patterns = 5;
            }),
            "sparse_attention.num_different_global_patterns: 5 is above 4, num_local_blocks / "
            "num_global_blocks");
  EXPECT_EQ(changed([](C& c) { c.horizontal_global_attention = true; }),
            "sparse_attention.horizontal_global_attention: needs \"attention\": \"bidirectional\"");
  EXPECT_EQ(changed([](C& c) {
              c.mode = SparseMode::bigbird;
              c.num_random_blocks = 17;
            }),
            "sparse_attention.num_random_blocks: 17 is more than the 16 blocks of a sequence of "
            "256");
  EXPECT_EQ(changed([](C& c) {
              c.mode = SparseMode::bslongformer;
              c.global_block_indices = {0, 4};
              c.global_block_end_indices = {1, 4};
            }),
            "sparse_attention.global_block_end_indices: 4 is not above its start, 4");
  EXPECT_EQ(changed([](C& c) {
              c.mode = SparseMode::layout;
              c.rows = {"#.", ".#"};
            }),
            "x-zerolab.block_layout: has 2 rows where a sequence of 256 has 16 blocks of 16");
  EXPECT_EQ(changed([](C& c) {
              c.mode = SparseMode::layout;
              c.rows = {"#.", ".."};
            }),
            "x-zerolab.block_layout: row 1 has no block up to the diagonal");
  EXPECT_EQ(changed([](C& c) {
              c.mode = SparseMode::layout;
              c.rows = {"#x", "##"};
            }),
            "x-zerolab.block_layout: row 0 has other characters than # (a block) and . (none)");
  EXPECT_THROW(build(config_of(SparseMode::layout), 3), Error);
}

}  // namespace
}  // namespace zl
