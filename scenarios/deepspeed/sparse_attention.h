// The section `sparse_attention`, with x-zerolab.block_layout and x-zerolab.block_seed.
// Ownership: values. Threads: pure functions of their arguments.
#pragma once

#include "core/model/sparse_attention_config.h"
#include "scenarios/deepspeed/values.h"

namespace zl {

// `document`: the file that the keys are of. causal: of a model that is known to be a decoder.
SparseAttentionConfig build_sparse_attention(Keys& keys, const Json& document, bool causal);

// Adds the section to the JSON of a strategy; nothing where attention has no blocks.
void add_sparse_attention(const SparseAttentionConfig& config, Json& out);

}  // namespace zl
