// What a pipeline's ranks hold and recompute at least.
#include <algorithm>

#include "core/pipeline/stage_blocks.h"
#include "simulator/planner/plan_bounds.h"

namespace zl::sim {
namespace {

// Bytes a parameter of weights, gradients and optimizer state, of which a rank has some whole and
// some in shards. Only what every strategy of the kind holds.
double bytes_a_parameter(const Strategy& strategy, double shard) {
  const double cut = 1 / shard;
  const ZeroConfig& zero = strategy.zero;
  const OffloadConfig& offload = strategy.offload;
  double held = 0;
  if (offload.parameters == Tier::device) {
    held += bytes_of(strategy.precision.compute_dtype) * (zero.stage == 3 ? cut : 1);
  }
  if (offload.optimizer != Tier::device) return held;
  const bool adam = strategy.optimizer.kind == OptimizerKind::adamw ||
                    strategy.optimizer.kind == OptimizerKind::adam;
  held += bytes_of(strategy.precision.grad_accum_dtype) * (zero.stage >= 2 ? cut : 1);
  if (adam) held += 2 * bytes_of(DType::f32) * (zero.stage >= 1 ? cut : 1);
  return held;
}

// Micro-batches of a chunk that are on their way at a moment, that of its forward among them.
std::int64_t on_their_way(const PipelineForm::Rank& rank, const HeldMoment& moment,
                          std::size_t chunk) {
  const bool is_forward =
      moment.pass == StagePass::forward || moment.pass == StagePass::first_forward;
  const bool begins = moment.is_pass && is_forward && moment.chunk == static_cast<int>(chunk);
  return rank.counts[moment.held + 2 * chunk] + (begins ? 1 : 0);
}

// Bytes that a rank's micro-batches keep where so many of its blocks are recomputed, its first
// stages before its next. At their end what one of them keeps is handed on.
std::int64_t most_kept(const PipelineForm::Rank& rank, const std::vector<std::int64_t>& layers,
                       const LayerWork& kept, const LayerWork& again, std::int64_t number) {
  std::vector<std::int64_t> bytes;  // of a micro-batch of each chunk
  for (const int stage : rank.stages) {
    const std::int64_t blocks = std::min(number, layers[stage]);
    bytes.push_back((layers[stage] - blocks) * kept.kept +
                    std::max<std::int64_t>(0, blocks - 1) * again.kept);
    number -= blocks;
  }
  std::int64_t most = 0;
  for (const HeldMoment& moment : rank.moments) {
    std::int64_t sum = 0;
    for (std::size_t chunk = 0; chunk < bytes.size(); ++chunk) {
      sum += on_their_way(rank, moment, chunk) * bytes[chunk];
    }
    most = std::max(most, sum);
  }
  return most;
}

}  // namespace

double PlanBounds::state_bytes(const PlanCut& cut, std::int64_t rank, double ends) const {
  return bytes_a_parameter(cut.state, cut.shard) / cut.t *
         (block_ * cut.layers_of_rank(rank) + ends);
}

std::vector<std::int64_t> PlanBounds::fewest_blocks(const PipelineForm& form,
                                                    const PlanPoint& point,
                                                    const PlanSpace::Division& division,
                                                    const LayerWork& kept, const LayerWork& again,
                                                    std::int64_t budget) const {
  const PipelineConfig pipeline = space_.strategy(point).pipeline;
  const PlanCut cut = plan_cut(space_, model_.layers, point, division);
  const std::vector<std::int64_t> layers = even_split(model_.layers, static_cast<int>(cut.stages));
  std::vector<std::int64_t> fewest(form.ranks().size(), 0),
      most = layers_of_ranks(pipeline, layers);
  for (std::size_t rank = 0; rank < fewest.size(); ++rank) {
    const double ends = (rank == 0 ? embedding_ : 0) +
                        (rank + 1 == fewest.size() && !is_v(cut.schedule) ? head_ : 0);
    const std::int64_t state =
        static_cast<std::int64_t>(state_bytes(cut, static_cast<std::int64_t>(rank), ends));
    while (fewest[rank] < most[rank]) {
      const std::int64_t middle = (fewest[rank] + most[rank]) / 2;
      if (state + most_kept(form.ranks()[rank], layers, kept, again, middle) <= budget) {
        most[rank] = middle;
      } else {
        fewest[rank] = middle + 1;
      }
    }
  }
  return spread_blocks(pipeline, layers, fewest);
}

}  // namespace zl::sim
