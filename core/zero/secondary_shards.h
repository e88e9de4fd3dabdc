// ZeRO++'s hierarchical partition (hpZ, Wang et al. 2023): the weights that a forward gathered from
// all ranks stay, in parts, on the neighbours of a small group, within a node; the backward gathers
// them from there. What it costs is a part of the weights once more on every rank.
// Ownership: owns the parts. Threads: one rank's thread.
#pragma once

#include <vector>

#include "core/parallel/partition.h"
#include "core/rank/rank_context.h"

namespace zl {

class SecondaryShards {
 public:
  // Of the parameters that are gathered; nothing where the mesh has no such groups.
  SecondaryShards(RankContext& context, DType dtype, const Partition& partition,
                  const std::vector<bool>& is_gathered);

  bool any() const { return !storage_.view.empty(); }
  // This rank's part of the whole parameter, on the compute stream.
  void keep(int parameter, const TensorView& whole);
  // For a gather along Axis::secondary.
  Segment segment(int parameter, const TensorView& whole) const { return {part(parameter), whole}; }

 private:
  TensorView part(int parameter) const;

  RankContext& context_;
  std::vector<std::int64_t> counts_, offsets_;  // of the parts, by parameter
  Tensor storage_;
};

}  // namespace zl
