// How a configuration cuts a model: what its bounds are made of.
// Ownership: refers to the state. Threads: values.
#pragma once

#include <cstdint>

#include "core/parallel/mesh.h"
#include "simulator/planner/plan_space.h"

namespace zl::sim {

struct PlanCut {
  const Strategy& state;
  PipelineKind schedule{};
  std::int64_t layers = 0, stages = 1, p = 1,
               v = 1;  // ranks of the pipeline, chunks of each
  double m = 1, t = 1,
         shard = 1;                     // micro-batches, ranks of the tensor group and of a shard
  LayerSplit split = LayerSplit::even;  // or units
  Mesh mesh;

  // How many stages, the first ones, have a layer more than the others.
  std::int64_t rest() const { return split == LayerSplit::even ? layers % stages : 0; }
  double layers_of(std::int64_t stage) const;
  // Of a rank of the pipeline, all its chunks.
  double layers_of_rank(std::int64_t rank) const;
  std::int64_t stage_of(std::int64_t rank, std::int64_t chunk) const;
};

PlanCut plan_cut(const PlanSpace& space, std::int64_t layers, const PlanPoint& point,
                 const PlanSpace::Division& division);

}  // namespace zl::sim
