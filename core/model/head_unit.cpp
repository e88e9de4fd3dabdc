#include "core/model/head_unit.h"

#include <algorithm>
#include <utility>

#include "core/ops/loss.h"
#include "core/ops/matmul.h"
#include "core/ops/norm.h"

namespace zl {

void HeadUnit::forward(MicroBatch& micro) {
  const BatchGeometry& batch = micro.geometry;
  ResidualPair stream = std::exchange(micro.stream, {});
  Kept& kept = micro.kept<Kept>(number());
  const auto activation = [&](const Shape& shape, DType dtype) {
    return context_.allocate(dtype, shape, MemoryTag::activation, {"final norm", number()});
  };
  const Shape rows_by_hidden{batch.stream_rows(), config_.hidden};
  const bool fused = !stream.add.view.empty();
  kept.input = fused ? activation(rows_by_hidden, batch.dtype) : std::move(stream.owned);
  kept.out = activation(rows_by_hidden, batch.dtype);
  if (config_.norm == NormKind::layer_norm) {
    kept.mean = activation(Shape{batch.stream_rows()}, DType::f32);
  }
  kept.rstd = activation(Shape{batch.stream_rows()}, DType::f32);
  NormForward norm{
      .kind = config_.norm,
      .x = fused ? stream.x : kept.input.view,
      .weight = weight(table_.final_norm_weight),
      .bias = weight(table_.final_norm_bias),
      .out = kept.out.view,
      .mean = kept.mean.view,
      .rstd = kept.rstd.view,
      .epsilon = config_.norm_epsilon,
  };
  if (fused) {
    norm.add = stream.add.view;
    norm.sum = kept.input.view;
    // The addition of the last block's output, under that block's key.
    norm.dropout =
        stream_dropout(config_.dropout, batch, number() - 1, DropoutSite::mlp_out, config_.hidden);
  }
  context_.run(norm);
}

std::int64_t HeadUnit::held_tokens() const {
  const std::vector<ParameterSpec::Rows>& rows = table_.specs[table_.head].rows;
  return rows.empty() ? config_.vocab : rows.front().count;
}

// Rows of logits begin at multiples of 128 bytes in 16-bit types: GPT-2's 50257 columns would leave
// most of them at an odd multiple of two, where no GPU copies more than an element at a time.
std::int64_t HeadUnit::logits_width() const {
  constexpr std::int64_t kElements = 64;
  return (config_.vocab + kElements - 1) / kElements * kElements;
}

// About 256 MiB of logits, in whole tiles of 64 rows; the last chunk may be shorter. Each chunk
// reads and writes the whole fp32 gradient of the head, which GPUs hide only behind a thousand rows
// or more.
std::int64_t HeadUnit::chunk_rows(const BatchGeometry& batch) const {
  constexpr std::int64_t kBytes = std::int64_t{256} << 20, kTile = 64;
  const std::int64_t row = logits_width() * static_cast<std::int64_t>(size_of(batch.dtype));
  return std::min(batch.rows(), std::max<std::int64_t>(1, kBytes / row / kTile) * kTile);
}

void HeadUnit::loss(MicroBatch& micro, bool train) {
  const BatchGeometry& batch = micro.geometry;
  const std::int64_t rows = batch.rows();
  const LossTerms& terms = micro.loss;
  Kept& kept = micro.kept<Kept>(number());
  Tensor all_rows;
  const TensorView out = group_.gathered(kept.out, all_rows, {"final norm of all rows", number()});
  const TensorView head = access_.weight(table_.head);
  Tensor losses =
      context_.allocate(DType::f32, Shape{rows}, MemoryTag::workspace, {"losses", number()});
  if (train) {
    micro.gradient = context_.allocate(batch.dtype, {rows, config_.hidden}, MemoryTag::activation,
                                       {"residual gradient", number()});
  }
  const bool padded = logits_width() != config_.vocab;
  const std::int64_t chunk = chunk_rows(batch);
  Tensor storage = context_.allocate(batch.dtype, {chunk, logits_width()}, MemoryTag::workspace,
                                     {"logits chunk", number()});
  const auto counted = static_cast<double>(terms.counted_rows);
  GradientTarget dhead;
  if (train) dhead = access_.gradient(table_.head);
  for (std::int64_t first = 0; first < rows; first += chunk) {
    const std::int64_t count = std::min(chunk, rows - first);
    const TensorView logits = storage.view.row_range(0, count);
    const TensorView input = out.row_range(first, count);
    context_.run(Gemm{.a = input, .b = head, .c = logits, .trans_b = true, .padded = padded});
    classify({
        .logits = logits,
        .targets = micro.ids.targets.flat(first, count),
        .losses = losses.view.flat(first, count),
        .vocab = held_tokens(),
        .grad_scale = static_cast<float>(terms.gradient_scale / counted),
        .write_gradient = train,
    });
    if (!train) continue;
    context_.run(Gemm{.a = logits,
                      .b = input,
                      .c = dhead.view,
                      .trans_a = true,
                      .accumulate = dhead.accumulate || first > 0,
                      .padded = padded});
    context_.run(Gemm{.a = logits,
                      .b = head,
                      .c = micro.gradient.view.row_range(first, count),
                      .padded = padded});
  }
  context_.run(
      Sum{.x = losses, .out = terms.sum, .scale = terms.weight / counted, .accumulate = true});
  kept.out.reset();
  if (train) {
    micro.gradient = group_.summed(std::move(micro.gradient), {"residual gradient", number()});
  }
}

void HeadUnit::classify(CrossEntropy op) {
  if (!group_.has_others()) return context_.run(op);
  const std::int64_t ranks = group_.shard().ranks;
  const std::int64_t values = op.logits.rows() * LogitStatistics::kValues;
  Tensor all = context_.allocate(op.losses.dtype, Shape{ranks * values}, MemoryTag::workspace,
                                 {"logit statistics", number()});
  const TensorView own = all.view.flat(group_.shard().rank * values, values);
  op.first_token = group_.shard().rank * config_.vocab;
  context_.run(LogitStatistics{op.logits, op.targets, own, op.vocab, op.first_token});
  const Segment segment{own, all};
  context_.collective(
      StreamId::compute,
      {CollectiveKind::all_gather, ReduceOp::sum, Purpose::data, {&segment, 1}, Axis::tensor});
  op.statistics = all;
  context_.run(op);
}

void HeadUnit::backward(MicroBatch& micro) {
  loss(micro, true);
  if (!table_.tied()) access_.gradient_ready(table_.head);
  norm_backward(micro);
  micro.forget(number());
}

void HeadUnit::norm_backward(MicroBatch& micro) {
  Kept& kept = micro.kept<Kept>(number());
  const GradientTarget dweight = access_.gradient(table_.final_norm_weight);
  const int bias = table_.final_norm_bias;
  context_.run(NormBackward{
      .kind = config_.norm,
      .dout = micro.gradient.view,
      .x = kept.input.view,
      .weight = weight(table_.final_norm_weight),
      .mean = kept.mean.view,
      .rstd = kept.rstd.view,
      .dx = micro.gradient.view,
      .dweight = dweight.view,
      .dbias = bias < 0 ? TensorView{} : access_.gradient(bias).view,
      .accumulate = dweight.accumulate,
  });
  access_.gradient_ready(table_.final_norm_weight);
  if (bias >= 0) access_.gradient_ready(bias);
}

void HeadUnit::evaluate(MicroBatch& micro) {
  loss(micro, false);
  micro.forget(number());
}

}  // namespace zl
