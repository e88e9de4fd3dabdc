// What one token of one block leaves behind for the backward, under a software.
// Ownership: values. Threads: pure functions.
#pragma once

#include <cstdint>

#include "core/base/dtype.h"
#include "core/model/model_config.h"
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

// Bytes for each token. Kept: until the block's backward.
struct BlockBytes {
  std::int64_t norms = 0, inputs = 0, attention = 0, mlp = 0;  // kept; inputs: of products
  std::int64_t input = 0;         // kept where all of the block is computed again
  std::int64_t selective = 0;     // kept where it is recomputed selectively
  std::int64_t beside_again = 0;  // of the input, beside a block that was computed again

  // Where most is held while it goes backward, in the MLP and in the first norm: what is left of
  // the kept, and scratch.
  std::int64_t mlp_left = 0, mlp_scratch = 0, norm_left = 0, norm_scratch = 0;

  std::int64_t all() const { return norms + inputs + attention + mlp; }
};
BlockBytes block_bytes(const ModelConfig& model, const SoftwareMemory& software,
                       const ElementBytes& element);

// Kept of the last norm and of the head's input, bytes for each token.
std::int64_t head_input_bytes(const ModelConfig& model, const SoftwareMemory& software,
                              const ElementBytes& element);

}  // namespace zl::sim
