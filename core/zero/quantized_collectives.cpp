#include "core/zero/quantized_collectives.h"
#include "core/ops/quantize.h"

namespace zl {
namespace {

// A tensor as it travels: [ranks, chunk] bytes and [ranks, blocks of a chunk] scales.
struct QuantizedMessage {
  TensorView q, scales;
};

struct QuantizedMessages {
  Tensor storage;  // all scales, then all bytes
  std::vector<QuantizedMessage> each;
};

QuantizedMessages allocate_messages(RankContext& context, const std::vector<std::int64_t>& chunks) {
  const std::int64_t ranks = context.ranks(Axis::data);
  std::int64_t scales = 0, bytes = 0;
  for (const std::int64_t chunk : chunks) {
    scales += ranks * blocks_of(chunk, kQuantizedBlock);
    bytes += ranks * chunk;
  }
  QuantizedMessages messages;
  messages.storage = context.allocate(DType::u8, Shape{4 * scales + bytes},
                                      MemoryTag::communication, {"quantized blocks"});
  std::byte* scale = messages.storage.view.data;
  std::byte* byte = scale + 4 * scales;
  for (const std::int64_t chunk : chunks) {
    const std::int64_t blocks = blocks_of(chunk, kQuantizedBlock);
    messages.each.push_back({TensorView{byte, DType::u8, Shape{ranks, chunk}},
                             TensorView{scale, DType::f32, Shape{ranks, blocks}}});
    byte += ranks * chunk;
    scale += 4 * ranks * blocks;
  }
  return messages;
}

void collective(RankContext& context, StreamId stream, CollectiveKind kind,
                const std::vector<Segment>& segments) {
  context.collective(stream, {kind, ReduceOp::sum, Purpose::data, segments});
}

}  // namespace

Tensor quantized_all_gather(RankContext& context, StreamId stream,
                            const std::vector<Segment>& segments) {
  std::vector<std::int64_t> chunks;
  for (const Segment& segment : segments) chunks.push_back(segment.source.count());
  QuantizedMessages messages = allocate_messages(context, chunks);
  std::vector<Segment> wire;
  for (std::size_t i = 0; i < segments.size(); ++i) {
    const auto& [q, scales] = messages.each[i];
    const TensorView own_q = q.row_range(context.rank(), 1);
    const TensorView own_scales = scales.row_range(context.rank(), 1);
    context.run(stream, BlockQuantize{segments[i].source.reshaped(own_q.shape), own_q, own_scales,
                                      kQuantizedBlock});
    wire.push_back({own_q, q});
    wire.push_back({own_scales, scales});
  }
  collective(context, stream, CollectiveKind::all_gather, wire);
  for (std::size_t i = 0; i < segments.size(); ++i) {
    const auto& [q, scales] = messages.each[i];
    context.run(stream, BlockDequantize{q, scales, segments[i].destination.reshaped(q.shape),
                                        kQuantizedBlock});
  }
  return std::move(messages.storage);
}

Tensor quantized_reduce_scatter(RankContext& context, StreamId stream,
                                const std::vector<QuantizedSum>& sums, double factor) {
  std::vector<std::int64_t> chunks;
  for (int way = 0; way < 2; ++way) {  // what goes out, what comes in
    for (const QuantizedSum& sum : sums) chunks.push_back(sum.destination.count());
  }
  QuantizedMessages messages = allocate_messages(context, chunks);
  std::vector<Segment> wire;
  for (std::size_t i = 0; i < sums.size(); ++i) {
    const auto& [q, scales] = messages.each[i];
    const auto& [got_q, got_scales] = messages.each[sums.size() + i];
    context.run(stream,
                BlockQuantize{sums[i].source.reshaped(q.shape), q, scales, kQuantizedBlock});
    wire.push_back({q, got_q});
    wire.push_back({scales, got_scales});
  }
  collective(context, stream, CollectiveKind::all_to_all, wire);
  for (std::size_t i = 0; i < sums.size(); ++i) {
    const auto& [q, scales] = messages.each[sums.size() + i];
    context.run(stream, BlockSum{q, scales, sums[i].destination, kQuantizedBlock,
                                 static_cast<float>(factor), sums[i].add});
  }
  return std::move(messages.storage);
}

}  // namespace zl
