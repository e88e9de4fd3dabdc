#include "core/offload/host_step.h"

namespace zl {

HostStep::HostStep(RankContext& context, const Strategy& strategy, const ParameterTable& table,
                   const Partition& partition, WeightStore& weights, HostGradients& gradients,
                   std::uint64_t seed)
    : context_(context),
      offload_(strategy.offload),
      partition_(partition),
      weights_(weights),
      gradients_(gradients),
      groups_(make_sub_groups(partition, strategy.offload)),
      tier_(make_state_tier(context, strategy, groups_)),
      begin_(partition.slot(first_host_parameter(partition, strategy.offload)).shard_offset) {
  if (!weights.on_host()) {
    outgoing_ = context.allocate(strategy.compute_dtype, Shape{partition.shard_elements() - begin_},
                                 MemoryTag::staging, {"updated weights"}, host_space(offload_));
  }
  make_optimizers(strategy);
  draw_masters(table, seed);
}

void HostStep::make_optimizers(const Strategy& strategy) {
  for (std::size_t g = 0; g < groups_.size(); ++g) {
    auto& optimizer = optimizers_.emplace_back();
    if (!groups_[g].on_host) continue;
    std::vector<UpdateRange> ranges;
    for (int p = groups_[g].first; p < groups_[g].last; ++p) {
      ranges.push_back({new_weights(p), gradients_.owned(p), p});
    }
    optimizer = std::make_unique<Optimizer>(context_, strategy.optimizer, std::move(ranges), false,
                                            OptimizerHome{StreamId::host, tier_->state(g)});
  }
}

TensorView HostStep::master(std::size_t group, int parameter) const {
  const Partition::Slot& slot = partition_.slot(parameter);
  return tier_->state(group).master.flat(slot.shard_offset - groups_[group].begin, slot.chunk);
}

// In the compute type, in host memory.
TensorView HostStep::new_weights(int parameter) const {
  if (weights_.on_host()) return weights_.owned(parameter);
  const Partition::Slot& slot = partition_.slot(parameter);
  return outgoing_.view.flat(slot.shard_offset - begin_, slot.chunk);
}

void HostStep::draw_masters(const ParameterTable& table, std::uint64_t seed) {
  HostDraw draw(context_, DType::f32);
  for (std::size_t g = 0; g < groups_.size(); ++g) {
    if (!groups_[g].on_host) continue;
    tier_->create(g);
    const OptimizerState state = tier_->state(g);
    for (const TensorView& view : {state.master, state.first, state.second}) {
      if (!view.empty()) context_.run(StreamId::host, Fill{view, 0});
    }
    context_.wait(StreamId::compute, context_.record(StreamId::host));
    for (int p = groups_[g].first; p < groups_[g].last; ++p) {
      draw(table.specs[static_cast<std::size_t>(p)], p, seed, partition_.owned_begin(p),
           master(g, p).flat(0, partition_.owned_count(p)));
    }
    context_.wait(StreamId::host, context_.record(StreamId::compute));
    tier_->store(g);
  }
}

void HostStep::step(const StepScalars& scalars) {
  if (settle()) context_.wait(StreamId::host, context_.record(StreamId::copy_in));
  const bool delayed =
      offload_.delayed_update_after >= 0 && steps_ >= offload_.delayed_update_after;
  ++steps_;
  context_.wait(StreamId::copy_in, context_.record(StreamId::compute));
  for (std::size_t g = 0; g < groups_.size(); ++g) {
    if (!groups_[g].on_host) continue;
    tier_->fetch(g);
    optimizers_[g]->step(scalars, gradients_.shift());
    tier_->store(g);
    if (!delayed) send(groups_[g]);
  }
  if (delayed) {
    pending_ = true;
  } else {
    context_.wait(StreamId::compute, context_.record(StreamId::copy_in));
  }
  if (offload_.delayed_update_after >= 0) gradients_.swap();
}

// The copy stream hears of the update even when the weights stay on the host: it reads them there.
void HostStep::send(const SubGroup& group) {
  context_.wait(StreamId::copy_in, context_.record(StreamId::host));
  if (weights_.on_host()) return;
  for (int p = group.first; p < group.last; ++p) {
    context_.copy(StreamId::copy_in, Route::host_to_device, weights_.owned(p), new_weights(p));
  }
}

bool HostStep::settle() {
  if (!pending_) return false;
  pending_ = false;
  context_.wait(StreamId::copy_in, context_.record(StreamId::compute));
  for (const SubGroup& group : groups_) {
    if (group.on_host) send(group);
  }
  context_.wait(StreamId::compute, context_.record(StreamId::copy_in));
  return true;
}

void HostStep::read_master(int parameter, const TensorView& destination) {
  std::size_t group = 0;
  while (groups_[group].last <= parameter) ++group;
  tier_->fetch(group);
  context_.wait(StreamId::compute, context_.record(StreamId::host));
  context_.copy(StreamId::compute, Route::host_to_device, destination, master(group, parameter));
  tier_->release(group, context_.record(StreamId::compute));
}

}  // namespace zl
