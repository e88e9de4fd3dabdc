#include "core/zero/replicated_weights.h"
#include "core/ops/elementwise.h"

namespace zl {

ReplicatedWeights::ReplicatedWeights(RankContext& context, const StoreConfig& config,
                                     const ParameterTable& table, const Partition& partition)
    : context_(context), config_(config), table_(table), partition_(partition) {
  weights_ = context.allocate(config.precision.compute_dtype, Shape{partition.full_elements()},
                              MemoryTag::parameter, {"weights"});
  unit_parameters_.resize(table.units());
  arriving_.assign(table.units(), -1);
  for (std::size_t p = 0; p < table.specs.size(); ++p) {
    unit_parameters_[table.specs[p].unit].push_back(static_cast<int>(p));
  }
}

void ReplicatedWeights::initialize(const InitialWeights& initial) {
  context_.run(Fill{weights_.view, 0});
  for (std::size_t i = 0; i < table_.specs.size(); ++i) {
    const int p = static_cast<int>(i);
    draw_initial(context_, table_.specs[i], initial, 0, weight(p));
  }
}

void ReplicatedWeights::enter(int unit, Pass) {
  // A tied head reads the embedding's weights, which arrived before the first forward op.
  EventId& event = arriving_[unit];
  if (event >= 0) context_.wait(StreamId::compute, event);
  event = -1;
}

TensorView ReplicatedWeights::weight(int parameter) {
  const Partition::Slot& slot = partition_.slot(parameter);
  return weights_.view.flat(slot.full_offset, slot.count).reshaped(table_.specs[parameter].shape);
}

TensorView ReplicatedWeights::owned(int parameter) {
  return config_.zero.stage == 0 ? partition_.padded(weights_, parameter)
                                 : partition_.chunk_of(weights_, parameter);
}

void ReplicatedWeights::gather_updated() {
  if (config_.zero.stage == 0) return;
  if (!config_.zero.overlap_comm) {
    std::vector<int> all;
    for (const auto& unit : unit_parameters_) all.insert(all.end(), unit.begin(), unit.end());
    gather(StreamId::compute, all);
    return;
  }
  context_.wait(StreamId::communication, context_.record(StreamId::compute));
  for (std::size_t unit = 0; unit < unit_parameters_.size(); ++unit) {
    if (unit_parameters_[unit].empty()) continue;  // of another stage
    ScopeGuard scope(context_, Phase::gather, static_cast<int>(unit));
    gather(StreamId::communication, unit_parameters_[unit]);
    arriving_[unit] = context_.record(StreamId::communication);
  }
}

void ReplicatedWeights::gather(StreamId stream, const std::vector<int>& parameters) {
  std::vector<Segment> segments;
  for (const int p : parameters) {
    segments.push_back({partition_.chunk_of(weights_, p), partition_.padded(weights_, p)});
  }
  ScopeGuard scope(context_, Phase::gather, context_.scope().unit);
  context_.collective(stream, {CollectiveKind::all_gather, ReduceOp::sum, Purpose::data, segments,
                               context_.mesh().sharding()});
}

}  // namespace zl
