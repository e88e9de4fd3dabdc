// How the layers of a model are cut over the ranks of a tensor group (Megatron-LM: Shoeybi et al.
// 2019; sequence parallelism: Korthikanti et al. 2022). Ownership: a value. Threads: immutable.
#pragma once

#include <cstdint>

namespace zl {

struct TensorConfig {
  std::int64_t ranks = 1;          // 1: no tensor parallelism
  bool sequence_parallel = false;  // norms and dropout on a part of the rows on each rank
  // What a column product's backward exchanges travels beside its products: the gradient of its
  // input while that of its weights is computed, gathered rows before (Megatron-LM's layers.py).
  bool overlap = false;

  bool operator==(const TensorConfig&) const = default;
};

// One rank's place in it.
struct TensorShard {
  int ranks = 1, rank = 0;
  bool sequence_parallel = false;

  bool cuts_rows() const { return sequence_parallel && ranks > 1; }
};

}  // namespace zl
