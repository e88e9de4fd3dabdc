// What one token of one block leaves behind for the backward on one rank, under a software.
// Ownership: values. Threads: pure functions.
#pragma once

#include <cstdint>

#include "core/base/dtype.h"
#include "core/model/model_config.h"
#include "core/model/recompute_config.h"
#include "core/parallel/tensor_shard.h"
#include "simulator/cluster/software_memory.h"

namespace zl::sim {

inline constexpr std::int64_t kFloatBytes = 4;

// Bytes of an element of what products take and give, and of the stream between the blocks.
struct ElementBytes {
  std::int64_t compute = 4, stream = 4;
  // Products take copies of weights and inputs in the compute type, each its own of an input.
  bool casts = false;
};
ElementBytes element_bytes(DType compute, const SoftwareMemory& software);

// A block as one rank of a tensor group has it.
struct BlockProgram {
  const ModelConfig& model;
  const SoftwareMemory& software;
  ElementBytes element;
  TensorConfig tensor;
  std::int64_t sequence = 0;

  // Of bytes over the stream's width: whole on every rank, or cut by sequence parallelism.
  std::int64_t rows(std::int64_t bytes) const;
  // Of bytes over heads or the MLP's width.
  std::int64_t cut(std::int64_t bytes) const;
};

// Bytes for each token. Kept: until the block's backward.
struct BlockBytes {
  // Kept; inputs: of products; masks: of dropout.
  std::int64_t norms = 0, inputs = 0, attention = 0, mlp = 0, masks = 0;
  std::int64_t input = 0;         // kept where all of the block is computed again
  std::int64_t selective = 0;     // kept where it is recomputed selectively
  std::int64_t waiting = 0;       // for the weights' half of a backward in halves: both factors
  std::int64_t beside_again = 0;  // of the input, beside a block that was computed again

  // Where most is held while it goes backward, in the MLP, in attention that keeps its
  // probabilities and in the first norm: what is left of the kept, and scratch.
  std::int64_t mlp_left = 0, mlp_scratch = 0, norm_left = 0, norm_scratch = 0;
  std::int64_t attention_left = 0, attention_scratch = 0;  // 0: less than in the MLP

  std::int64_t all() const { return norms + inputs + attention + mlp + masks; }
};
BlockBytes block_bytes(const BlockProgram& program, const RecomputeConfig& recompute);

// Kept of the last norm and of the head's input, bytes for each token.
std::int64_t head_input_bytes(const BlockProgram& program);

}  // namespace zl::sim
