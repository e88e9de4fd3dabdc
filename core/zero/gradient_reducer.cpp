#include "core/ops/elementwise.h"
#include "core/zero/gradient_store.h"
#include "core/zero/quantized_collectives.h"

namespace zl {

// Default: the average, scaled once after the sum. prescale_gradients: divide by the factor before,
// multiply by factor / N after (DeepSpeed's order).
ReduceOp GradientReducer::reduce_op() const {
  return config_.zero.sum_gradients || config_.zero.prescale_gradients ? ReduceOp::sum
                                                                       : ReduceOp::average;
}

double GradientReducer::scale_before() const {
  return config_.zero.prescale_gradients ? 1.0 / config_.zero.gradient_predivide_factor : 1.0;
}

double GradientReducer::scale_after() const {
  return config_.zero.prescale_gradients && !config_.zero.sum_gradients
             ? config_.zero.gradient_predivide_factor / partition_.ranks()
             : 1.0;
}

std::vector<TensorView> GradientReducer::to_wire(StreamId stream, const std::vector<Item>& items,
                                                 Tensor& storage) {
  const bool cast = config_.precision.communication_dtype != config_.precision.grad_accum_dtype;
  if (cast) {
    std::int64_t elements = 0;
    for (const Item& item : items) elements += item.padded.count();
    storage = context_.allocate(config_.precision.communication_dtype, Shape{elements},
                                MemoryTag::communication, {"gradients in the communication type"});
  }
  std::vector<TensorView> wire;
  std::int64_t offset = 0;
  for (const Item& item : items) {
    wire.push_back(cast ? storage.view.flat(offset, item.padded.count()) : item.padded);
    offset += item.padded.count();
    if (cast || scale_before() != 1.0) {
      context_.run(stream, Axpy{item.padded, wire.back(), scale_before(), false});
    }
  }
  return wire;
}

Tensor GradientReducer::all_reduce(StreamId stream, const std::vector<Item>& items) {
  Tensor storage;
  std::vector<Segment> segments;
  const std::vector<TensorView> wire = to_wire(stream, items, storage);
  for (const TensorView& view : wire) segments.push_back({view, view});
  context_.collective(stream, {CollectiveKind::all_reduce, reduce_op(), Purpose::data, segments});
  for (std::size_t i = 0; i < items.size(); ++i) {
    if (wire[i].data == items[i].padded.data && scale_after() == 1.0) continue;
    context_.run(stream, Axpy{wire[i], items[i].padded, scale_after(), false});
  }
  return storage;
}

// ZeRO++: signed bytes cross the wire, the sum is in f32, so nothing is scaled before it.
Tensor GradientReducer::quantized(StreamId stream, const std::vector<Item>& items) {
  std::vector<QuantizedSum> sums;
  for (const Item& item : items) sums.push_back({item.padded, item.destination, item.add});
  const double factor = config_.zero.sum_gradients ? 1.0 : 1.0 / partition_.ranks();
  return quantized_reduce_scatter(context_, stream, sums, factor);
}

Tensor GradientReducer::reduce_scatter(StreamId stream, const std::vector<Item>& items) {
  if (config_.zero.quantized_gradients) return quantized(stream, items);
  Tensor storage;
  std::vector<Segment> segments;
  const std::vector<TensorView> wire = to_wire(stream, items, storage);
  for (std::size_t i = 0; i < items.size(); ++i) {
    const bool direct =
        !items[i].add && scale_after() == 1.0 && items[i].destination.dtype == wire[i].dtype;
    segments.push_back({wire[i], direct ? items[i].destination : partition_.own_chunk(wire[i])});
  }
  context_.collective(stream, {CollectiveKind::reduce_scatter, reduce_op(), Purpose::data, segments,
                               context_.mesh().sharding()});
  for (std::size_t i = 0; i < items.size(); ++i) {
    if (segments[i].destination.data == items[i].destination.data) continue;
    context_.run(stream,
                 Axpy{segments[i].destination, items[i].destination, scale_after(), items[i].add});
  }
  return storage;
}

void GradientReducer::average_replicas(StreamId stream, const std::vector<TensorView>& chunks) {
  if (context_.ranks(Axis::replicate) == 1 || chunks.empty()) return;
  std::vector<Segment> segments;
  for (const TensorView& chunk : chunks) segments.push_back({chunk, chunk});
  const ReduceOp op = config_.zero.sum_gradients ? ReduceOp::sum : ReduceOp::average;
  context_.collective(stream,
                      {CollectiveKind::all_reduce, op, Purpose::data, segments, Axis::replicate});
}

}  // namespace zl
