#include "core/model/label_head.h"

#include <utility>

#include "core/ops/activation.h"
#include "core/ops/elementwise.h"
#include "core/ops/loss.h"
#include "core/ops/matmul.h"

namespace zl {
namespace {

// The first rows of the sequences of [batch * sequence, columns].
ColumnsView first_rows(const TensorView& rows, const BatchGeometry& batch) {
  return {rows.reshaped({batch.batch, batch.sequence * rows.columns()}), 0, rows.columns()};
}

ColumnsView whole(const TensorView& matrix) { return {matrix, 0, matrix.columns()}; }

}  // namespace

Tensor LabelHead::sequences(const BatchGeometry& batch, std::int64_t columns, const char* what) {
  return context_.allocate(batch.dtype, {batch.batch, columns}, MemoryTag::activation,
                           {what, number()});
}

void LabelHead::drop(const BatchGeometry& batch, DropoutSite site, const TensorView& rows) {
  const DropoutSpec spec =
      dropout_spec(config_.label_dropout, batch, number(), site, config_.hidden);
  if (spec.p > 0) context_.run(Dropout{rows, rows, spec});
}

void LabelHead::linear(const TensorView& x, const LinearWeights& weights, const TensorView& out) {
  context_.run(Gemm{.a = x,
                    .b = access_.weight(weights.weight),
                    .c = out,
                    .bias = access_.weight(weights.bias),
                    .trans_b = true});
}

void LabelHead::forward(MicroBatch& micro) {
  const BatchGeometry& batch = micro.geometry;
  const ResidualPair stream = std::exchange(micro.stream, {});
  Kept& saved = kept(micro);
  saved.first = sequences(batch, config_.hidden, "first rows");
  context_.run(CopyColumns{first_rows(stream.x, batch), whole(saved.first)});
  if (config_.drops_first_row) drop(batch, DropoutSite::first_row, saved.first);
  saved.dense = sequences(batch, config_.hidden, "pooler");
  linear(saved.first, pooler(), saved.dense);
  saved.pooled = sequences(batch, config_.hidden, "pooled rows");
  context_.run(ActivationForward{
      .kind = ActivationKind::tanh, .x = saved.dense.view, .y = saved.pooled.view});
  drop(batch, DropoutSite::pooled, saved.pooled);
}

Tensor LabelHead::loss(MicroBatch& micro, bool train) {
  const BatchGeometry& batch = micro.geometry;
  const LossTerms& terms = micro.loss;
  Tensor logits = sequences(batch, config_.labels, "label logits");
  linear(kept(micro).pooled, classifier(), logits);
  Tensor losses =
      context_.allocate(DType::f32, Shape{batch.batch}, MemoryTag::workspace, {"losses", number()});
  context_.run(
      CrossEntropy{.logits = logits.view,
                   .targets = micro.ids.targets,
                   .losses = losses.view,
                   .vocab = config_.labels,
                   .grad_scale = static_cast<float>(terms.gradient_scale / terms.counted_rows),
                   .write_gradient = train});
  context_.run(Sum{.x = losses,
                   .out = terms.sum,
                   .scale = terms.weight / terms.counted_rows,
                   .accumulate = true});
  return logits;
}

void LabelHead::backward(MicroBatch& micro) {
  const BatchGeometry& batch = micro.geometry;
  Kept& saved = kept(micro);
  const Tensor dlogits = loss(micro, true);
  add_weight_gradient(context_, access_, classifier(), dlogits, saved.pooled);
  Tensor gradient = sequences(batch, config_.hidden, "pooled gradient");
  context_.run(Gemm{.a = dlogits, .b = access_.weight(table_.head), .c = gradient.view});
  drop(batch, DropoutSite::pooled, gradient);
  context_.run(ActivationBackward{.kind = ActivationKind::tanh,
                                  .x = saved.dense.view,
                                  .dy = gradient.view,
                                  .dx = gradient.view});
  add_weight_gradient(context_, access_, pooler(), gradient, saved.first);
  // In the place of what it was made from.
  context_.run(
      Gemm{.a = gradient, .b = access_.weight(table_.dense_weight), .c = saved.dense.view});
  if (config_.drops_first_row) drop(batch, DropoutSite::first_row, saved.dense);
  micro.gradient = context_.allocate(batch.dtype, {batch.rows(), config_.hidden},
                                     MemoryTag::activation, {"residual gradient", number()});
  context_.run(Fill{micro.gradient.view, 0});
  context_.run(CopyColumns{whole(saved.dense), first_rows(micro.gradient, batch)});
  micro.forget(number());
}

void LabelHead::evaluate(MicroBatch& micro) {
  loss(micro, false);
  micro.forget(number());
}

void LabelHead::logits(MicroBatch& micro, const std::vector<std::int64_t>& rows,
                       const TensorView& out) {
  ZL_CHECK(static_cast<std::int64_t>(rows.size()) == micro.geometry.batch,
           "the labels of all sequences are told at once");
  linear(kept(micro).pooled, classifier(), out);
  micro.forget(number());
}

}  // namespace zl
