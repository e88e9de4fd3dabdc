// Layouts of blocks from a configuration: DeepSpeed's SparsityConfig classes, built for the length
// at hand. Ownership: values. Threads: pure functions.
#pragma once

#include <vector>

#include "core/model/sparse_attention_config.h"
#include "core/ops/block_table.h"

namespace zl {

// Of which heads of which layer.
struct LayoutsOf {
  std::int64_t sequence = 0;
  std::int64_t first_head = 0, heads = 1;
  std::int64_t layer = 0;
};

// One layout for each head, or one for all of them. A layout that is not bidirectional has no block
// above the diagonal. Random blocks depend on seed, layer, head and row only. Error{invalid} with
// sparse_conflict's text.
std::vector<BlockLayout> block_layouts(const SparseAttentionConfig& config, const LayoutsOf& of);

// Whether layers have layouts of their own.
bool differs_by_layer(const SparseAttentionConfig& config);

}  // namespace zl
