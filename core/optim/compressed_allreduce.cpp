#include "core/optim/compressed_allreduce.h"
#include "core/ops/compress.h"
#include "core/ops/elementwise.h"
#include "core/ops/optimizer.h"

#include <algorithm>

namespace zl {

CompressedAllReduce::CompressedAllReduce(RankContext& context, const Partition& partition,
                                         Scale scale)
    : context_(context), partition_(partition), scale_(scale) {
  for (int p = 0; p < parameters(); ++p) {
    offsets_.push_back(message_bytes_);
    message_bytes_ += partition.ranks() * packed_bytes(partition.slot(p).chunk);
  }
  if (partition.ranks() == 1) return;
  const auto error = [&](std::int64_t elements, const char* what) {
    return context.allocate(DType::f32, Shape{elements}, MemoryTag::optimizer, {what});
  };
  worker_error_ = error(partition.full_elements(), "worker error");
  server_error_ = error(partition.shard_elements(), "server error");
  clear_errors();
}

void CompressedAllReduce::archive(StateArchive& archive, const std::string& prefix) {
  archive.tensor(prefix + "worker_error", worker_error_.view);
  archive.tensor(prefix + "server_error", server_error_.view);
}

void CompressedAllReduce::clear_errors() {
  if (partition_.ranks() == 1) return;
  context_.run(Fill{worker_error_, 0});
  context_.run(Fill{server_error_, 0});
}

CompressedAllReduce::Buffers CompressedAllReduce::allocate_buffers() {
  const auto allocate = [&](DType dtype, std::int64_t count, const char* what) {
    return context_.allocate(dtype, Shape{count}, MemoryTag::communication, {what});
  };
  const std::int64_t count = parameters();
  Buffers buffers;
  buffers.sent = allocate(DType::u8, message_bytes_, "packed signs");
  buffers.received = allocate(DType::u8, message_bytes_, "packed signs of all ranks");
  buffers.scales = allocate(DType::f32, count, "scales");
  buffers.all_scales = allocate(DType::f32, partition_.ranks() * count, "scales of all ranks");
  buffers.all_scales.view = buffers.all_scales.view.reshaped(Shape{partition_.ranks(), count});
  buffers.bounds = allocate(DType::f32, count, "largest elements");
  buffers.squares = allocate(DType::f64, 2 * count, "squared norms");
  return buffers;
}

TensorView CompressedAllReduce::message_of(const TensorView& buffer, int parameter) const {
  const std::int64_t bytes = packed_bytes(partition_.slot(parameter).chunk);
  return buffer.flat(offsets_[parameter], partition_.ranks() * bytes)
      .reshaped(Shape{partition_.ranks(), bytes});
}

void CompressedAllReduce::run(const TensorView& values) {
  const int ranks = partition_.ranks();
  if (ranks == 1) return;
  const Buffers buffers = allocate_buffers();
  std::vector<Message> whole, own;
  std::vector<Segment> exchange, gather;
  for (int p = 0; p < parameters(); ++p) {
    const Partition::Slot& slot = partition_.slot(p);
    const TensorView sent = message_of(buffers.sent, p);
    const TensorView own_row = sent.row_range(partition_.rank(), 1);
    whole.push_back(
        {partition_.padded(worker_error_, p).reshaped(Shape{ranks, slot.chunk}), sent, slot.count});
    own.push_back({partition_.shard(server_error_, p).reshaped(Shape{1, slot.chunk}), own_row,
                   partition_.owned_count(p)});
    exchange.push_back({sent, message_of(buffers.received, p)});
    gather.push_back({own_row, sent});
  }
  const auto collective = [&](CollectiveKind kind, const std::vector<Segment>& segments) {
    context_.collective(StreamId::compute, {kind, ReduceOp::sum, Purpose::data, segments});
  };
  context_.run(Axpy{.x = values, .y = worker_error_, .accumulate = true});
  compress(whole, buffers);
  collective(CollectiveKind::all_to_all, exchange);
  share_scales(buffers);
  for (int p = 0; p < parameters(); ++p) {
    context_.run(SignAverage{.packed = message_of(buffers.received, p),
                             .scales = buffers.all_scales,
                             .out = partition_.shard(server_error_, p),
                             .column = p,
                             .count = partition_.owned_count(p)});
  }
  compress(own, buffers);
  collective(CollectiveKind::all_gather, gather);
  share_scales(buffers);
  for (int p = 0; p < parameters(); ++p) {
    const Partition::Slot& slot = partition_.slot(p);
    context_.run(SignUnpack{.packed = message_of(buffers.sent, p),
                            .scales = buffers.all_scales,
                            .out = partition_.padded(values, p).reshaped(Shape{ranks, slot.chunk}),
                            .column = p,
                            .count = slot.count});
  }
}

void CompressedAllReduce::compress(const std::vector<Message>& messages, const Buffers& buffers) {
  measure(messages, buffers);
  std::int64_t total = 0;
  for (const Message& message : messages) total += message.count;
  for (std::size_t i = 0; i < messages.size(); ++i) {
    const auto index = static_cast<std::int64_t>(i);
    const bool shared = scale_ == Scale::shared;
    const std::int64_t measured = shared ? total : messages[i].count;
    context_.run(SignCompress{.x = messages[i].x,
                              .square = buffers.squares.view.flat(shared ? 0 : 2 * index, 2),
                              .packed = messages[i].packed,
                              .scale = buffers.scales.view.flat(index, 1),
                              .count = messages[i].count,
                              .square_count = std::max<std::int64_t>(1, measured)});
  }
}

// Squared norms of what is to be said, exact for any thread count: one for each parameter, or one
// for all in the first place.
void CompressedAllReduce::measure(const std::vector<Message>& messages, const Buffers& buffers) {
  const bool shared = scale_ == Scale::shared;
  context_.run(Fill{buffers.bounds, 0});
  context_.run(Fill{buffers.squares, 0});
  std::int64_t total = 0;
  for (const Message& message : messages) total += message.count;
  for (const bool squares : {false, true}) {
    for (std::size_t i = 0; i < messages.size(); ++i) {
      if (messages[i].count == 0) continue;
      const std::int64_t place = shared ? 0 : static_cast<std::int64_t>(i);
      const TensorView x = messages[i].x.flat(0, messages[i].count);
      const TensorView bound = buffers.bounds.view.flat(place, 1);
      if (squares) {
        context_.run(SquaredSum{.x = x,
                                .bound = bound,
                                .out = buffers.squares.view.flat(2 * place, 2),
                                .total_count = shared ? total : messages[i].count,
                                .accumulate = true});
      } else {
        context_.run(AbsMax{.x = x, .out = bound, .accumulate = true});
      }
    }
  }
}

void CompressedAllReduce::share_scales(const Buffers& buffers) {
  const Segment segment{buffers.scales, buffers.all_scales.view.flat()};
  context_.collective(StreamId::compute,
                      {CollectiveKind::all_gather, ReduceOp::sum, Purpose::control, {&segment, 1}});
}

}  // namespace zl
