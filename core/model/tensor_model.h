// A model as one rank of a tensor group has it: heads, MLP columns and vocabulary rows cut, the
// rest whole (Shoeybi et al. 2019, Megatron-LM). Ownership: values. Threads: pure functions.
#pragma once

#include "core/model/model_config.h"
#include "core/parallel/tensor_shard.h"

namespace zl {

// Error{invalid} naming the key, both numbers and what would divide, where the model cannot be cut:
// heads and MLP width in equal parts; kv heads in equal parts or, fewer than ranks, one on
// several; under sequence parallelism the sequence too.
void check_tensor(const ModelConfig& model, const TensorConfig& config,
                  std::int64_t sequence_length);

// Its heads, kv heads, MLP width and vocabulary are those of the rank; the vocabulary is rounded up
// to equal parts.
ModelConfig shard_of(const ModelConfig& model, const TensorShard& shard);

// How many ranks, one after the other, hold the same kv heads.
int kv_copies(const ModelConfig& model, const TensorShard& shard);

}  // namespace zl
