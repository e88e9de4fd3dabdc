// Layouts of blocks for tests: random ones, with empty rows and full ones among them.
// Ownership: the mask's table lies in the workspace. Threads: used by one thread.
#pragma once

#include <vector>

#include "core/ops/attention.h"
#include "core/ops/block_table.h"
#include "tests/conformance/workspace.h"

namespace zl::test {

inline BlockLayout random_layout(Workspace& w, std::int64_t block, std::int64_t blocks) {
  BlockLayout layout{block,
                     std::vector<std::vector<std::int32_t>>(static_cast<std::size_t>(blocks))};
  for (auto& row : layout.rows) {
    const std::int64_t tenths = w.pick({0, 2, 5, 10});
    for (std::int64_t column = 0; column < blocks; ++column) {
      if (w.pick({0, 1, 2, 3, 4, 5, 6, 7, 8, 9}) < tenths) {
        row.push_back(static_cast<std::int32_t>(column));
      }
    }
  }
  return layout;
}

inline BlockLayout dense_layout(std::int64_t block, std::int64_t blocks) {
  BlockLayout layout{block, {}};
  std::vector<std::int32_t> all;
  for (std::int64_t column = 0; column < blocks; ++column) {
    all.push_back(static_cast<std::int32_t>(column));
  }
  layout.rows.assign(static_cast<std::size_t>(blocks), all);
  return layout;
}

// Of all heads of the shape, or one layout for each. most: as block_table's.
inline AttentionMask mask_of_blocks(Workspace& w, const AttentionShape& shape,
                                    const std::vector<BlockLayout>& layouts, bool causal,
                                    const TensorView& lengths = {}, std::int64_t most = 0) {
  const BlockTable table = block_table(layouts, causal, most);
  return AttentionMask::sparse(w.numbers(table.words), table, shape.heads, causal, lengths);
}

// A layout for the shape's sequence, a multiple of 16: of any blocks that divide it, its tiles
// whole or cut into parts.
inline AttentionMask random_blocks(Workspace& w, const AttentionShape& shape, bool causal,
                                   const TensorView& lengths = {}) {
  std::int64_t block = 16;
  for (const std::int64_t wanted : {w.pick({16, 32, 48}), w.pick({16, 64, 80, 96, 112, 128})}) {
    if (shape.sequence % wanted == 0) block = wanted;
  }
  std::vector<BlockLayout> layouts;
  for (std::int64_t left = w.coin() ? 1 : shape.heads; left > 0; --left) {
    layouts.push_back(random_layout(w, block, shape.sequence / block));
  }
  return mask_of_blocks(w, shape, layouts, causal, lengths, w.pick({0, 1, 3, 5}));
}

}  // namespace zl::test
