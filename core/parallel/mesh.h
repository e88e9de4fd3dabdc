// The ranks of a run as a grid: a rank has one coordinate on every axis, and the ranks that differ
// in one coordinate only form that axis' groups. Ranks are numbered as Megatron-LM numbers them,
// the tensor axis fastest (core/parallel_state.py):
//   rank = (((pipeline * replicate_size + replicate) * shard_size + shard) * context_size +
//   context)
//          * tensor_size + tensor
// Sequence parallelism shares the tensor axis. Experts lie on a second grid over the same ranks.
// Ownership: a value. Threads: immutable.
#pragma once

#include <vector>

#include "core/base/collective_kind.h"

namespace zl {

struct Mesh {
  int tensor = 1, context = 1, shard = 1, replicate = 1, pipeline = 1;
  // So many neighbours of a shard group hold its weights once more between them (ZeRO++'s hpZ).
  int secondary = 1;

  // Plain data parallelism, ZeRO's shards over all ranks.
  static Mesh data_parallel(int ranks) { return {.shard = ranks}; }

  bool operator==(const Mesh&) const = default;

  int ranks() const { return tensor * context * shard * replicate * pipeline; }
  // Over which ZeRO's shards lie: all data-parallel ranks, or one copy's of hybrid sharding.
  Axis sharding() const { return replicate > 1 ? Axis::shard : Axis::data; }

  // Whether its groups communicate. Programs reduce over data and shards whatever the mesh: a group
  // of one rank answers them too.
  bool has_group(Axis axis) const {
    return size(axis) > 1 || axis == Axis::data || axis == sharding();
  }

  // Ranks of a group of the axis; world: all. Axis::expert: 1.
  int size(Axis axis) const;
  // Distance in rank between neighbours of a group.
  int stride(Axis axis) const;
  // Where the rank stands in its group of the axis, 0 to size - 1.
  int coordinate(int rank, Axis axis) const { return rank / stride(axis) % size(axis); }
  // Which group of the axis the rank is in: the lowest rank of it.
  int group(int rank, Axis axis) const { return rank - coordinate(rank, axis) * stride(axis); }
  // The ranks of that group, in order of their coordinates.
  std::vector<int> members(int rank, Axis axis) const;

  // Error{invalid} naming the sizes when one is below 1, they do not make `ranks`, or secondary
  // does not divide shard.
  void check(int ranks) const;
};

}  // namespace zl
