// The layouts of block-sparse attention of one rank's layers and heads, on its device.
// Ownership: owns the tables, whose memory is in the ledger; refers to the context. Threads: one
// rank's thread.
#pragma once

#include <vector>

#include "core/model/kv_cache.h"
#include "core/model/sparse_attention_config.h"
#include "core/ops/attention_mask.h"
#include "core/ops/block_table.h"
#include "core/rank/rank_context.h"

namespace zl {

// Which of a model's layers and heads a rank has.
struct SparseShare {
  std::vector<std::int64_t> layers;
  std::int64_t heads = 1, first_head = 0;
};

// What the layouts are of a text that grows token by token: the window of local_sliding; block 0:
// no window is the same.
BlockWindow block_window(const SparseAttentionConfig& config);

class SparseAttention {
 public:
  // Tables for sequences of one length. Error{invalid} with sparse_conflict's text.
  SparseAttention(RankContext& context, const SparseAttentionConfig& config,
                  const SparseShare& share, std::int64_t sequence);

  // Of a layer of the share; lengths: of the sequences, or none.
  AttentionMask mask(std::int64_t layer, const TensorView& lengths = {}) const;

 private:
  struct Layer {
    std::int64_t number;
    BlockTable table;  // its words must live until they are on the device
    Tensor words;
  };
  const Layer& at(std::int64_t layer) const;

  std::int64_t heads_;
  bool causal_, by_layer_;
  std::vector<Layer> layers_;  // one where all are alike
};

}  // namespace zl
