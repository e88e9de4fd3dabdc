#include "simulator/planner/plan_cut.h"

namespace zl::sim {

double PlanCut::layers_of(std::int64_t stage) const {
  const bool is_end = stage == 0 || stage + 1 == stages;
  const std::int64_t whole = split == LayerSplit::even ? layers / stages + (stage < rest() ? 1 : 0)
                                                       : (layers + 2) / stages - (is_end ? 1 : 0);
  return static_cast<double>(whole);
}

double PlanCut::layers_of_rank(std::int64_t rank) const {
  double sum = 0;
  for (std::int64_t chunk = 0; chunk < v; ++chunk) sum += layers_of(stage_of(rank, chunk));
  return sum;
}

std::int64_t PlanCut::stage_of(std::int64_t rank, std::int64_t chunk) const {
  const bool back = is_v(schedule) && chunk % 2 == 1;
  return back ? (chunk + 1) * p - 1 - rank : chunk * p + rank;
}

PlanCut plan_cut(const PlanSpace& space, std::int64_t layers, const PlanPoint& point,
                 const PlanSpace::Division& division) {
  const std::int64_t tensor = space.tensor[point.tensor], pipeline = space.pipeline[point.pipeline],
                     chunks = space.chunks[point.chunks];
  const std::int64_t replicas = space.replicas[point.replicas];
  const std::int64_t shard = division.data / replicas;
  return {.state = space.states[point.state],
          .schedule = space.schedules[point.schedule],
          .layers = layers,
          .stages = pipeline * chunks,
          .p = pipeline,
          .v = chunks,
          .m = static_cast<double>(division.micro_batches),
          .t = static_cast<double>(tensor),
          .shard = static_cast<double>(shard),
          .split = space.split(pipeline * chunks),
          .mesh = {.tensor = static_cast<int>(tensor),
                   .shard = static_cast<int>(shard),
                   .replicate = static_cast<int>(replicas),
                   .pipeline = static_cast<int>(pipeline)}};
}

}  // namespace zl::sim
