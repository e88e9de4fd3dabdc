#include "core/offload/host_gradients.h"

#include "core/offload/placement.h"
#include "core/ops/elementwise.h"
#include "core/ops/optimizer.h"

namespace zl {

HostGradients::HostGradients(RankContext& context, const OffloadConfig& offload, DType dtype,
                             const Partition& partition, int first_parameter,
                             std::int64_t largest_take)
    : context_(context),
      partition_(partition),
      first_parameter_(first_parameter),
      begin_(partition.slot(first_parameter).shard_offset),
      elements_(partition.shard_elements() - begin_),
      buffers_(offload.delayed_update_after >= 0 ? 2 : 1) {
  const MemorySpace space = host_space(offload);
  shards_ = context.allocate(dtype, Shape{buffers_ * elements_}, MemoryTag::gradient,
                             {"gradients on the host"}, space);
  context.run(StreamId::host, Fill{shards_.view, 0});
  context.wait(StreamId::copy_out, context.record(StreamId::host));
  const auto scalars = [&](DType type, std::int64_t count, MemorySpace where) {
    return context.allocate(type, Shape{count}, MemoryTag::staging, {"norm of host gradients"},
                            where);
  };
  bound_ = scalars(DType::f32, 1, space);
  squares_ = scalars(DType::f64, 2, space);
  arriving_bound_ = scalars(DType::f32, 1, MemorySpace::device);
  arriving_squares_ = scalars(DType::f64, 2, MemorySpace::device);
  if (largest_take == 0) return;
  for (Slot& slot : staging_) {
    slot.storage = context.allocate(dtype, Shape{largest_take}, MemoryTag::staging,
                                    {"arriving gradients"}, space);
  }
}

EventId HostGradients::take(StreamId producer, const std::vector<Chunk>& chunks, bool add) {
  Slot& slot = staging_[next_slot_];
  if (add) next_slot_ = 1 - next_slot_;
  context_.wait(StreamId::copy_out, context_.record(producer));
  if (add && slot.free >= 0) context_.wait(StreamId::copy_out, slot.free);
  std::int64_t offset = 0;
  std::vector<Axpy> sums;
  for (const Chunk& chunk : chunks) {
    TensorView destination = owned(chunk.parameter);
    if (add) {
      const TensorView staged = slot.storage.view.flat(offset, chunk.view.count());
      sums.push_back(Axpy{staged, destination, 1.0, true});
      destination = staged;
      offset += chunk.view.count();
    }
    context_.copy(StreamId::copy_out, Route::device_to_host, destination, chunk.view);
  }
  const EventId arrived = context_.record(StreamId::copy_out);
  if (!add) return arrived;
  context_.wait(StreamId::host, arrived);
  for (const Axpy& sum : sums) context_.run(StreamId::host, sum);
  slot.free = context_.record(StreamId::host);
  return arrived;
}

void HostGradients::arrive() { context_.wait(StreamId::host, context_.record(StreamId::copy_out)); }

void HostGradients::add_bound(const TensorView& bound, bool accumulate) {
  arrive();
  context_.run(StreamId::host, AbsMax{all(), bound_});
  context_.wait(StreamId::compute, context_.record(StreamId::host));
  context_.copy(StreamId::compute, Route::host_to_device, arriving_bound_, bound_);
  context_.run(AbsMax{arriving_bound_, bound, accumulate});
}

void HostGradients::add_squares(const TensorView& bound, const TensorView& parts,
                                std::int64_t total_count, bool accumulate, std::int64_t uncounted) {
  if (uncounted == elements_) return;
  context_.copy(StreamId::compute, Route::device_to_host, bound_, bound);
  context_.wait(StreamId::host, context_.record(StreamId::compute));
  context_.run(StreamId::host,
               SquaredSum{all().flat(0, elements_ - uncounted), bound_, squares_, total_count});
  context_.wait(StreamId::compute, context_.record(StreamId::host));
  context_.copy(StreamId::compute, Route::host_to_device, arriving_squares_, squares_);
  context_.run(Axpy{arriving_squares_, parts, 1.0, accumulate});
}

TensorView HostGradients::bring(const TensorView& factor) {
  const TensorView here = squares_.view.flat(0, 1);
  context_.wait(StreamId::copy_out, context_.record(StreamId::compute));
  context_.copy(StreamId::copy_out, Route::device_to_host, here, factor, Purpose::control);
  arrive();
  return here;
}

TensorView HostGradients::owned(int parameter) const {
  const Partition::Slot& slot = partition_.slot(parameter);
  return shards_.view.flat(shift() + slot.shard_offset - begin_, slot.chunk);
}

TensorView HostGradients::all() const { return shards_.view.flat(shift(), elements_); }

}  // namespace zl
