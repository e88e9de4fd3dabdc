// What the ranks of a tensor group do with rows of activations: add up partial products, and under
// sequence parallelism give each rank a part of the rows and bring them together again
// (Korthikanti et al. 2022). One rank: nothing. Ownership: refers to the context. Threads: one
// rank's thread.
#pragma once

#include "core/parallel/tensor_shard.h"
#include "core/rank/rank_context.h"

namespace zl {

class TensorGroup {
 public:
  TensorGroup(RankContext& context, const TensorShard& shard) : context_(context), shard_(shard) {}

  const TensorShard& shard() const { return shard_; }
  bool is_first() const { return shard_.rank == 0; }
  bool has_others() const { return shard_.ranks > 1; }

  // All rows of a tensor of which each rank has its part [rows / ranks, columns]; the tensor itself
  // where every rank has all. storage: holds what is new.
  TensorView gathered(const TensorView& part, Tensor& storage, Label label) const;
  // The ranks' partial [rows, columns] added up: all of it, or this rank's part of the rows.
  Tensor summed(Tensor partial, Label label) const;

 private:
  RankContext& context_;
  TensorShard shard_;
};

}  // namespace zl
