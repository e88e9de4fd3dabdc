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
  // overlaps: as TensorConfig::overlap.
  TensorGroup(RankContext& context, const TensorShard& shard, bool overlaps = false)
      : context_(context), shard_(shard), overlaps_(overlaps && shard.ranks > 1) {}

  const TensorShard& shard() const { return shard_; }
  bool is_first() const { return shard_.rank == 0; }
  bool has_others() const { return shard_.ranks > 1; }

  // All rows of a tensor of which each rank has its part [rows / ranks, columns]; the tensor itself
  // where every rank has all. storage: holds what is new.
  TensorView gathered(const TensorView& part, Tensor& storage, Label label) const;
  // The ranks' partial [rows, columns] added up: all of it, or this rank's part of the rows.
  Tensor summed(Tensor partial, Label label) const;

  // The same beside what this rank computes: on its way until arrived() is called.
  struct Arriving {
    TensorView view;
    Tensor storage, from;  // what is new, what it is made of
    EventId event = -1;    // of the communication stream; -1: it is here
  };
  bool overlaps() const { return overlaps_; }
  Arriving begin_gather(const TensorView& part, Label label) const;
  Arriving begin_sum(Tensor partial, Label label) const;
  // The compute stream waits for it.
  void arrived(Arriving& arriving) const;

 private:
  TensorView gather(StreamId stream, const TensorView& part, Tensor& storage, Label label) const;
  // Into `partial` itself, or into what is returned.
  Tensor add_up(StreamId stream, const TensorView& partial, Label label) const;
  RankContext& context_;
  TensorShard shard_;
  bool overlaps_;
};

}  // namespace zl
