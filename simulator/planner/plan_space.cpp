#include "simulator/planner/plan_space.h"

#include <algorithm>
#include <iterator>

#include "core/base/error.h"
#include "core/model/tensor_model.h"

namespace zl::sim {
namespace {

std::size_t index_of(std::uint16_t index) { return index; }

// In one number where all stages have the same.
RecomputeConfig first_blocks_of(const std::vector<std::int64_t>& blocks) {
  RecomputeConfig recompute{.mode = RecomputeMode::first_blocks};
  if (std::ranges::count(blocks, blocks.front()) == std::ssize(blocks)) {
    recompute.blocks = blocks.front();
    if (recompute.blocks == 0) recompute.mode = RecomputeMode::none;
  } else {
    recompute.stage_blocks = blocks;
  }
  return recompute;
}

}  // namespace

std::int64_t PlanSpace::size() const {
  std::int64_t product = 1;
  for (const std::size_t choices :
       {states.size(), tensor.size(), sequence_parallel.size(), pipeline.size(), chunks.size(),
        schedules.size(), replicas.size(), recompute.size(), micro_batch.size()}) {
    product *= static_cast<std::int64_t>(choices);
  }
  return product;
}

PlanPoint PlanSpace::at(std::int64_t index) const {
  PlanPoint point;
  const auto take = [&index](std::uint16_t& choice, std::size_t choices) {
    const auto count = static_cast<std::int64_t>(choices);
    choice = static_cast<std::uint16_t>(index % count);
    index /= count;
  };
  take(point.micro_batch, micro_batch.size());
  take(point.recompute, recompute.size());
  take(point.state, states.size());
  take(point.replicas, replicas.size());
  take(point.schedule, schedules.size());
  take(point.chunks, chunks.size());
  take(point.pipeline, pipeline.size());
  take(point.sequence_parallel, sequence_parallel.size());
  take(point.tensor, tensor.size());
  return point;
}

std::uint64_t PlanSpace::index(const PlanPoint& point) const {
  std::uint64_t index = 0;
  const auto add = [&index](std::uint16_t choice, std::size_t choices) {
    index = index * choices + choice;
  };
  add(point.tensor, tensor.size());
  add(point.sequence_parallel, sequence_parallel.size());
  add(point.pipeline, pipeline.size());
  add(point.chunks, chunks.size());
  add(point.schedule, schedules.size());
  add(point.replicas, replicas.size());
  add(point.state, states.size());
  add(point.recompute, recompute.size());
  add(point.micro_batch, micro_batch.size());
  return index;
}

std::optional<PlanSpace::Division> PlanSpace::division(const PlanPoint& point) const {
  const std::int64_t model = tensor[point.tensor] * pipeline[point.pipeline];
  if (ranks % model != 0) return std::nullopt;
  const std::int64_t data = ranks / model, samples = data * micro_batch[point.micro_batch];
  if (global_batch % samples != 0 || data % replicas[point.replicas] != 0) return std::nullopt;
  return Division{data, global_batch / samples};
}

LayerSplit PlanSpace::split(std::int64_t stages) const {
  return layers > 0 && is_even_by_units(layers, stages) ? LayerSplit::units : LayerSplit::even;
}

bool PlanSpace::has(RecomputeMode mode) const {
  return std::ranges::any_of(recompute,
                             [mode](const RecomputeConfig& each) { return each.mode == mode; });
}

Strategy PlanSpace::strategy(const PlanPoint& point,
                             const std::vector<std::int64_t>& blocks) const {
  Strategy strategy = states[point.state];
  strategy.tensor = {.ranks = tensor[point.tensor],
                     .sequence_parallel = sequence_parallel[point.sequence_parallel],
                     .overlap = strategy.tensor.overlap};
  strategy.pipeline = {.ranks = pipeline[point.pipeline],
                       .virtual_stages = chunks[point.chunks],
                       .schedule = schedules[point.schedule],
                       .split = split(pipeline[point.pipeline] * chunks[point.chunks])};
  if (strategy.pipeline.ranks == 1) strategy.pipeline = {};
  strategy.zero.replicas = replicas[point.replicas];
  strategy.recompute = recompute[point.recompute];
  if (!blocks.empty()) strategy.recompute = first_blocks_of(blocks);
  strategy.micro_batch = micro_batch[point.micro_batch];
  const auto divided = division(point);
  ZL_CHECK(divided.has_value(), "the ranks and the batch of a plan can be divided");
  strategy.gradient_accumulation = divided->micro_batches;
  return strategy;
}

bool is_canonical(const PlanSpace& space, const PlanPoint& point) {
  const bool alone = space.tensor[point.tensor] == 1;
  if (alone && space.sequence_parallel[point.sequence_parallel]) return false;
  if (space.pipeline[point.pipeline] > 1) return true;
  return point.schedule == 0 && space.chunks[point.chunks] == 1;
}

std::string conflict_of(const ModelConfig& model, const Strategy& strategy, std::int64_t ranks,
                        std::int64_t sequence_length) {
  for (const std::string& conflict :
       {encoder_conflict(model, strategy), tensor_conflict(strategy), replicas_conflict(strategy),
        secondary_conflict(strategy), recompute_conflict(strategy), stage_conflict(strategy)}) {
    if (!conflict.empty()) return conflict;
  }
  try {
    mesh_of(strategy, static_cast<int>(ranks));
    check_tensor(model, strategy.tensor, sequence_length);
    check_sparse_attention(strategy, model, sequence_length);
    check_offload(strategy);
    const PipelineConfig& pipeline = strategy.pipeline;
    if (pipeline.ranks * pipeline.virtual_stages > 1) {
      split_units(model, pipeline);
      check_shape(pipeline.schedule,
                  {.ranks = static_cast<int>(pipeline.ranks),
                   .micro_batches = static_cast<int>(strategy.gradient_accumulation),
                   .chunks = static_cast<int>(pipeline.virtual_stages)});
    }
  } catch (const Error& error) {
    return error.what();
  }
  return {};
}

PlanRules::PlanRules(const ModelConfig& model, const PlanSpace& space, std::int64_t sequence_length)
    : model_(model),
      space_(space),
      sequence_(sequence_length),
      tensor_(space.tensor.size() * space.sequence_parallel.size(), Answer::unknown),
      pipeline_(space.tensor.size() * space.pipeline.size() * space.chunks.size() *
                    space.schedules.size() * space.micro_batch.size(),
                Answer::unknown),
      state_(
          space.states.size() * space.replicas.size() * space.tensor.size() * space.pipeline.size(),
          Answer::unknown) {}

template <class Ask>
bool PlanRules::known(Answer& answer, const Ask& ask) {
  if (answer == Answer::unknown) answer = ask() ? Answer::yes : Answer::no;
  return answer == Answer::yes;
}

bool PlanRules::can_run(const Strategy& strategy, std::int64_t ranks) const {
  return conflict_of(model_, strategy, ranks, sequence_).empty();
}

// Groups of layers that every stage is made of; and layers of which some are recomputed, of a stage
// or of the stages of a pipeline.
bool PlanRules::can_recompute(const PlanPoint& point) const {
  const RecomputeConfig& recompute = space_.recompute[point.recompute];
  const std::int64_t stages = space_.pipeline[point.pipeline] * space_.chunks[point.chunks];
  const std::int64_t fewest = model_.layers / stages;
  if (!recompute.stage_blocks.empty() && std::ssize(recompute.stage_blocks) != stages) return false;
  if (recompute.mode == RecomputeMode::automatic) {
    return fewest > 1 || (space_.recomputes_by_stage && stages > 1);
  }
  if (recompute.mode != RecomputeMode::every_k) return true;
  return model_.layers % stages == 0 && fewest % recompute.every == 0;
}

bool PlanRules::allows(const PlanPoint& point, const PlanSpace::Division& division) {
  if (!can_recompute(point)) return false;
  const std::size_t tensor = index_of(point.tensor), pipeline = index_of(point.pipeline);
  const auto cut = [&] {
    Strategy only = space_.states[0];
    only.zero.replicas = 1;
    only.tensor = space_.strategy(point).tensor;
    return can_run(only, only.tensor.ranks);
  };
  const auto staged = [&] {
    Strategy only = space_.states[0];
    only.zero.replicas = 1;
    only.pipeline = space_.strategy(point).pipeline;
    only.gradient_accumulation = division.micro_batches;
    return can_run(only, only.pipeline.ranks);
  };
  const auto sharded = [&] {
    Strategy only = space_.strategy(point);
    only.tensor = {};
    only.pipeline = {};
    only.recompute = {};  // of stages: can_recompute()
    return can_run(only, division.data);
  };
  const std::size_t cut_at =
      tensor * space_.sequence_parallel.size() + index_of(point.sequence_parallel);
  // The micro-batches of a step follow from both sizes of the mesh and the micro-batch.
  const std::size_t staged_at =
      (((tensor * space_.pipeline.size() + pipeline) * space_.chunks.size() +
        index_of(point.chunks)) *
           space_.schedules.size() +
       index_of(point.schedule)) *
          space_.micro_batch.size() +
      index_of(point.micro_batch);
  const std::size_t sharded_at =
      ((index_of(point.state) * space_.replicas.size() + index_of(point.replicas)) *
           space_.tensor.size() +
       tensor) *
          space_.pipeline.size() +
      pipeline;
  return known(tensor_[cut_at], cut) && known(pipeline_[staged_at], staged) &&
         known(state_[sharded_at], sharded);
}

}  // namespace zl::sim
