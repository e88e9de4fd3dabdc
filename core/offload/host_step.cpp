#include "core/offload/host_step.h"
#include "core/ops/elementwise.h"

#include <algorithm>

namespace zl {

HostStep::HostStep(RankContext& context, const OffloadConfig& offload,
                   const OptimizerConfig& optimizer, const PrecisionConfig& precision,
                   const ParameterTable& table, const Partition& partition,
                   const Placement& placement, UpdatedWeights& weights, HostGradients& gradients,
                   const InitialWeights& initial)
    : context_(context),
      offload_(offload),
      partition_(partition),
      weights_(weights),
      gradients_(gradients),
      groups_(placement.groups()),
      tier_(make_state_tier(context, offload, optimizer, groups_)),
      new_weights_(partition.size()) {
  place_new_weights(precision.compute_dtype);
  make_optimizers(table, optimizer, {precision.stochastic_rounding, initial.seed});
  draw_masters(table, initial);
}

void HostStep::place_new_weights(DType dtype) {
  const auto size = static_cast<std::int64_t>(size_of(dtype));
  const auto on_pages = [&](int p) {
    const std::int64_t page = ObjectLayout::kPage;
    return (partition_.slot(p).chunk * size + page - 1) / page * page;
  };
  std::int64_t to_device = 0, to_files = 0;
  for (const SubGroup& group : groups_) {
    std::int64_t pages = 0;
    for (int p = group.first; group.on_host && p < group.last; ++p) {
      if (weights_.tier(p) == Tier::device) to_device += partition_.slot(p).chunk;
      if (weights_.tier(p) == Tier::nvme) pages += on_pages(p);
    }
    to_files = std::max(to_files, pages);
  }
  const Label label{"updated weights"};
  const MemorySpace space = host_space(offload_);
  if (to_device > 0) {
    outgoing_ = context_.allocate(dtype, Shape{to_device}, MemoryTag::staging, label, space);
  }
  if (to_files > 0) {
    leaving_.resize(
        std::min(groups_.size(), static_cast<std::size_t>(offload_.parameter_buffer_count)));
  }
  for (Leaving& leaving : leaving_) {
    leaving.storage =
        context_.allocate_pages(DType::u8, to_files, MemoryTag::staging, label, space);
  }
  std::int64_t sent = 0;
  for (std::size_t g = 0; g < groups_.size(); ++g) {
    std::byte* page = to_files > 0 ? leaving(g).storage.view.data : nullptr;
    for (int p = groups_[g].first; groups_[g].on_host && p < groups_[g].last; ++p) {
      const std::int64_t chunk = partition_.slot(p).chunk;
      TensorView& view = new_weights_[p];
      if (weights_.tier(p) == Tier::cpu) {
        view = weights_.owned(p);
      } else if (weights_.tier(p) == Tier::device) {
        view = outgoing_.view.flat(sent, chunk);
        sent += chunk;
      } else {
        view = {page, dtype, Shape{chunk}};
        page += on_pages(p);
      }
    }
  }
}

void HostStep::make_optimizers(const ParameterTable& table, const OptimizerConfig& config,
                               const StochasticRounding& rounding) {
  for (std::size_t g = 0; g < groups_.size(); ++g) {
    auto& optimizer = optimizers_.emplace_back();
    if (!groups_[g].on_host) continue;
    std::vector<UpdateRange> ranges;
    for (int p = groups_[g].first; p < groups_[g].last; ++p) {
      ranges.push_back({new_weights_[p], gradients_.owned(p), p, partition_.owned_begin(p),
                        table.specs[p].number});
    }
    optimizer = make_host_optimizer(context_, config, std::move(ranges),
                                    {StreamId::host, tier_->state(g), rounding});
  }
}

TensorView HostStep::master(std::size_t group, int parameter) const {
  const Partition::Slot& slot = partition_.slot(parameter);
  return tier_->state(group).master.flat(slot.shard_offset - groups_[group].begin, slot.chunk);
}

void HostStep::draw_masters(const ParameterTable& table, const InitialWeights& initial) {
  HostDraw draw(context_, DType::f32);
  for (std::size_t g = 0; g < groups_.size(); ++g) {
    if (!groups_[g].on_host) continue;
    tier_->create(g);
    const StateViews state = tier_->state(g);
    for (const TensorView& view : {state.master, state.first, state.second}) {
      if (!view.empty()) context_.run(StreamId::host, Fill{view, 0});
    }
    context_.wait(StreamId::compute, context_.record(StreamId::host));
    for (int p = groups_[g].first; p < groups_[g].last; ++p) {
      draw(table.specs[p], initial, partition_.owned_begin(p),
           master(g, p).flat(0, partition_.owned_count(p)));
    }
    context_.wait(StreamId::host, context_.record(StreamId::compute));
    tier_->store(g);
  }
}

void HostStep::step(StepScalars scalars) {
  if (apply_delayed()) context_.wait(StreamId::host, context_.record(StreamId::copy_in));
  const bool delayed = delays();
  ++steps_;
  scalars.gradient_shift = gradients_.shift();
  if (!scalars.factor.empty()) scalars.factor = gradients_.bring(scalars.factor);
  for (std::size_t g = 0; g < groups_.size(); ++g) {
    if (!groups_[g].on_host) continue;
    tier_->fetch(g);
    if (!leaving_.empty() && leaving(g).free >= 0) context_.wait(StreamId::host, leaving(g).free);
    optimizers_[g]->step(scalars);
    tier_->store(g);
    if (!delayed) send(g);
  }
  if (delayed) {
    pending_ = true;
  } else {
    context_.wait(StreamId::compute, context_.record(StreamId::copy_in));
  }
  if (offload_.delayed_update_after >= 0) gradients_.swap();
}

// The copy stream hears of the update even when the weights stay on the host: it reads them there.
// It need not wait for the compute stream: the host did, for the bound of all gradients.
void HostStep::send(std::size_t group) {
  context_.wait(StreamId::copy_in, context_.record(StreamId::host));
  for (int p = groups_[group].first; p < groups_[group].last; ++p) {
    const TensorView& value = new_weights_[p];
    if (weights_.tier(p) == Tier::device) {
      context_.copy(StreamId::copy_in, Route::host_to_device, weights_.owned(p), value);
    } else if (weights_.tier(p) == Tier::nvme) {
      weights_.write_back(p, value);
      leaving(group).free = context_.record(StreamId::file_out);
    }
  }
}

bool HostStep::apply_delayed() {
  if (!pending_) return false;
  pending_ = false;
  for (std::size_t g = 0; g < groups_.size(); ++g) {
    if (groups_[g].on_host) send(g);
  }
  context_.wait(StreamId::compute, context_.record(StreamId::copy_in));
  return true;
}

void HostStep::archive(StateArchive& archive) {
  archive.integer("host_optimizer.steps", steps_);
  archive_pending(archive);
  for (std::size_t g = 0; g < groups_.size(); ++g) {
    if (!groups_[g].on_host) continue;
    const std::string prefix = "host_optimizer." + std::to_string(g) + ".";
    tier_->fetch(g);
    context_.synchronize(StreamId::host);
    const StateViews state = tier_->state(g);
    archive.tensor(prefix + "master", state.master, StateArchive::Place::host);
    archive.tensor(prefix + "first_moment", state.first, StateArchive::Place::host);
    archive.tensor(prefix + "second_moment", state.second, StateArchive::Place::host);
    optimizers_[g]->archive(archive, prefix);
    if (archive.restores()) {
      tier_->store(g);
    } else {
      tier_->release(g, context_.record(StreamId::host));
    }
  }
}

// Its weights, which the device will get at the next step.
void HostStep::archive_pending(StateArchive& archive) {
  if (offload_.delayed_update_after < 0) return;
  std::int64_t pending = pending_ ? 1 : 0;
  archive.integer("host_optimizer.pending", pending);
  pending_ = pending == 1;
  for (std::size_t p = 0; pending_ && p < new_weights_.size(); ++p) {
    archive.tensor("host_optimizer.pending." + std::to_string(p), new_weights_[p],
                   StateArchive::Place::host);
  }
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
