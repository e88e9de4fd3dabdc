#include "core/model/head_unit.h"

#include <algorithm>
#include <utility>

#include "core/model/linear_gradient.h"
#include "core/ops/activation.h"
#include "core/ops/elementwise.h"
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
  if (fused) {
    kept.input = activation(rows_by_hidden, batch.dtype);
  } else {
    kept.input =
        has_dense() ? dense_forward(batch, kept, std::move(stream.owned)) : std::move(stream.owned);
  }
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
      .weight_offset = norm_offset(),
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

Tensor HeadUnit::dense_forward(const BatchGeometry& batch, Kept& kept, Tensor rows) {
  const auto activation = [&](const char* what) {
    return context_.allocate(batch.dtype, rows.view.shape, MemoryTag::activation, {what, number()});
  };
  kept.dense = activation("head dense");
  context_.run(Gemm{.a = rows,
                    .b = access_.weight(table_.dense_weight),
                    .c = kept.dense.view,
                    .bias = access_.weight(table_.dense_bias),
                    .trans_b = true});
  Tensor out = activation("head activation");
  context_.run(ActivationForward{.kind = config_.activation, .x = kept.dense.view, .y = out.view});
  kept.rows = std::move(rows);
  return out;
}

void HeadUnit::dense_backward(MicroBatch& micro) {
  Kept& kept = micro.kept<Kept>(number());
  context_.run(ActivationBackward{.kind = config_.activation,
                                  .x = kept.dense.view,
                                  .dy = micro.gradient.view,
                                  .dx = kept.dense.view});
  add_weight_gradient(context_, access_, dense(), kept.dense, kept.rows);
  context_.run(
      Gemm{.a = kept.dense, .b = access_.weight(table_.dense_weight), .c = micro.gradient.view});
}

std::int64_t HeadUnit::held_tokens() const {
  const std::vector<ParameterSpec::Rows>& rows = table_.specs[table_.head].rows;
  return rows.empty() ? config_.vocab : rows.front().count;
}

// Rows of logits begin at multiples of 128 bytes in 16-bit types: GPT-2's 50257 columns would leave
// most of them at an odd multiple of two, where no GPU copies more than an element at a time. With
// a bias there is no room behind them.
std::int64_t HeadUnit::logits_width() const {
  if (table_.head_bias >= 0) return config_.vocab;
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
  const std::int64_t chunk = chunk_rows(batch);
  Tensor storage = context_.allocate(batch.dtype, {chunk, logits_width()}, MemoryTag::workspace,
                                     {"logits chunk", number()});
  GradientTarget dhead, dbias;
  if (train) dhead = access_.gradient(table_.head);
  const bool biased = table_.head_bias >= 0;
  if (train && biased) dbias = access_.gradient(table_.head_bias);
  for (std::int64_t first = 0; first < rows; first += chunk) {
    const std::int64_t count = std::min(chunk, rows - first);
    const TensorView logits = storage.view.row_range(0, count);
    const TensorView input = out.row_range(first, count);
    context_.run(Gemm{.a = input,
                      .b = head,
                      .c = logits,
                      .bias = weight(table_.head_bias),
                      .trans_b = true,
                      .padded = is_padded()});
    classify({
        .logits = logits,
        .targets = micro.ids.targets.flat(first, count),
        .losses = losses.view.flat(first, count),
        .vocab = held_tokens(),
        .grad_scale = static_cast<float>(terms.gradient_scale / terms.counted_rows),
        .write_gradient = train,
    });
    if (!train) continue;
    context_.run(Gemm{.a = logits,
                      .b = input,
                      .c = dhead.view,
                      .trans_a = true,
                      .accumulate = dhead.accumulate || first > 0,
                      .padded = is_padded()});
    if (biased) {
      context_.run(BiasBackward{
          .dout = logits, .dbias = dbias.view, .accumulate = dbias.accumulate || first > 0});
    }
    context_.run(Gemm{.a = logits,
                      .b = head,
                      .c = micro.gradient.view.row_range(first, count),
                      .padded = is_padded()});
  }
  context_.run(Sum{.x = losses,
                   .out = terms.sum,
                   .scale = terms.weight / terms.counted_rows,
                   .accumulate = true});
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
  if (table_.head_bias >= 0) access_.gradient_ready(table_.head_bias);
  norm_backward(micro);
  if (has_dense()) dense_backward(micro);
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
      .weight_offset = norm_offset(),
  });
  access_.gradient_ready(table_.final_norm_weight);
  if (bias >= 0) access_.gradient_ready(bias);
}

void HeadUnit::logits(MicroBatch& micro, const std::vector<std::int64_t>& rows,
                      const TensorView& out) {
  ZL_CHECK(!group_.shard().cuts_rows(), "logits are of rows that every rank has");
  Kept& kept = micro.kept<Kept>(number());
  const auto count = static_cast<std::int64_t>(rows.size());
  Tensor chosen = context_.allocate(kept.out.view.dtype, {count, config_.hidden},
                                    MemoryTag::activation, {"rows of logits", number()});
  for (std::int64_t i = 0; i < count; ++i) {
    context_.run(Axpy{.x = kept.out.view.row_range(rows[static_cast<std::size_t>(i)], 1),
                      .y = chosen.view.row_range(i, 1)});
  }
  context_.run(Gemm{.a = chosen,
                    .b = access_.weight(table_.head),
                    .c = out,
                    .bias = weight(table_.head_bias),
                    .trans_b = true,
                    .padded = out.columns() != config_.vocab});
  micro.forget(number());
}

void HeadUnit::evaluate(MicroBatch& micro) {
  loss(micro, false);
  micro.forget(number());
}

}  // namespace zl
