// The blocks that a model's attention was trained with, as its folder keeps them: in config.json
// under a key of zerolab's own, which transformers takes along unread, stands a strategy with the
// section `sparse_attention` alone. Ownership: values. Threads: pure functions.
#pragma once

#include <string>

#include "core/model/model_config.h"
#include "core/model/sparse_attention_config.h"
#include "simulator/json/reading.h"

namespace zl {

// In place of what the file says; nothing where attention is dense.
void set_attention_layout(const SparseAttentionConfig& sparse, Json& config);

// Of the folder's config.json; dense where it says nothing, or there is no folder. Throws
// Error{invalid} naming the file and the key for what is no such section.
SparseAttentionConfig attention_layout(const std::string& folder, const ModelConfig& model);

// What a strategy with `own` makes of weights that were trained with `trained`: a warning, which
// has the section to write, where the two differ; else nothing.
std::string other_layout(const SparseAttentionConfig& own, const SparseAttentionConfig& trained);

}  // namespace zl
