// The backward of a block: each of its two halves, from the gradient of what it added to the
// stream.
#include <utility>

#include "core/model/block.h"
#include "core/ops/activation.h"
#include "core/ops/elementwise.h"
#include "core/ops/head_norm.h"
#include "core/ops/matmul.h"
#include "core/ops/norm.h"

namespace zl {

void Block::backward(MicroBatch& micro) {
  Kept& saved = kept(micro);
  mlp_backward(micro, saved);
  attention_backward(micro, saved);
  micro.forget(number());
}

void Block::mlp_backward(MicroBatch& micro, Kept& saved) {
  const TensorView gradient = micro.gradient;
  Tensor dnorm = mlp_half_backward(micro, saved, saved.norm2, "norm2 gradient");
  norm_backward(dnorm, saved.x2, parameters_.norm2_weight, parameters_.norm2_bias, saved.mean2,
                saved.rstd2, gradient, micro.gradient);
  saved.x2.reset();
}

void Block::attention_backward(MicroBatch& micro, Kept& saved) {
  const TensorView gradient = micro.gradient;
  Tensor dqkv;
  Tensor dnorm = attention_half_backward(micro, saved, saved.norm1, dqkv, "norm1 gradient");
  norm_backward(dnorm, saved.input, parameters_.norm1_weight, parameters_.norm1_bias, saved.mean1,
                saved.rstd1, gradient, micro.gradient);
}

Tensor Block::mlp_half_backward(MicroBatch& micro, Halves& saved, Tensor& x, const char* what) {
  const BatchGeometry& batch = micro.geometry;
  if (saved.act.view.empty()) activation_forward(batch, saved);
  Tensor storage, all_rows;
  const TensorView dout = output_gradient(micro, DropoutSite::mlp_out, storage, all_rows);
  Tensor dact = activation(config_.ffn, batch, "mlp activation gradient");
  linear_backward(micro, down(), dout, saved.act, dact);
  put_off_output(micro, down(), storage, all_rows, saved.act);
  storage.reset();
  all_rows.reset();
  saved.act.reset();
  // In place where widths agree, so that a device may fuse it with the product that made dact.
  const bool gated = is_gated(config_.activation);
  context_.run(ActivationBackward{.kind = config_.activation,
                                  .x = saved.up.view,
                                  .dy = dact.view,
                                  .dx = gated ? saved.up.view : dact.view});
  if (!gated) std::swap(saved.up, dact);
  dact.reset();
  Tensor dx = column_backward(micro, up(), saved.up, x, what);
  saved.up.reset();
  x.reset();
  return dx;
}

Tensor Block::attention_half_backward(MicroBatch& micro, Halves& saved, Tensor& x, Tensor& dqkv,
                                      const char* what) {
  const BatchGeometry& batch = micro.geometry;
  if (saved.attention.view.empty()) attention_forward(batch, saved);
  Tensor storage, all_rows;
  const TensorView dout = output_gradient(micro, DropoutSite::attention_out, storage, all_rows);
  Tensor dattention = activation(config_.attention_width(), batch, "attention gradient");
  linear_backward(micro, projection(), dout, saved.attention, dattention);
  if (!micro.splits_backward) {
    storage.reset();
    all_rows.reset();
  }
  dqkv = activation(config_.qkv_width(), batch, "qkv gradient");
  Tensor delta = statistics(batch.rows() * config_.heads, "attention delta");
  const AttentionShape shape = attention_shape(batch);
  context_.run(AttentionBackward{.dout = dattention.view,
                                 .out = saved.attention.view,
                                 .qkv = packed_qkv(saved.qkv, shape),
                                 .lse = saved.lse.view,
                                 .dqkv = packed_qkv(dqkv, shape),
                                 .delta = delta.view,
                                 .shape = shape,
                                 .scale = attention_scale(),
                                 .dropout = attention_dropout(batch),
                                 .mask = attention_mask(batch, batch.sequence)});
  dattention.reset();
  delta.reset();
  put_off_output(micro, projection(), storage, all_rows, saved.attention);
  saved.attention.reset();
  saved.lse.reset();
  saved.qkv.reset();
  heads_backward(batch, saved, dqkv);
  return column_backward(micro, qkv(), dqkv, x, what);
}

void Block::heads_backward(const BatchGeometry& batch, Halves& saved, const TensorView& dqkv) {
  rotate(attention_shape(batch), dqkv, true);
  if (!config_.qk_norm) return;
  const GradientTarget dq = access_.gradient(parameters_.q_norm_weight);
  const GradientTarget dk = access_.gradient(parameters_.k_norm_weight);
  context_.run(HeadNormBackward{.dqkv = dqkv,
                                .x = saved.heads.view,
                                .q_weight = weight(parameters_.q_norm_weight),
                                .k_weight = weight(parameters_.k_norm_weight),
                                .rstd = saved.heads_rstd.view,
                                .dq_weight = dq.view,
                                .dk_weight = dk.view,
                                .shape = attention_shape(batch),
                                .weight_offset = norm_offset(),
                                .accumulate = dq.accumulate});
  access_.gradient_ready(parameters_.q_norm_weight);
  access_.gradient_ready(parameters_.k_norm_weight);
  saved.heads.reset();
  saved.heads_rstd.reset();
}

void Block::linear_backward(const MicroBatch& micro, const LinearWeights& linear,
                            const TensorView& dout, const TensorView& x, const TensorView& dx) {
  if (!micro.splits_backward) add_weight_gradient(context_, access_, linear, dout, x);
  context_.run(Gemm{.a = dout, .b = weight(linear.weight), .c = dx});
}

void Block::norm_backward(const TensorView& dout, const TensorView& x, int weight_id, int bias,
                          const Tensor& mean, const Tensor& rstd, const TensorView& dresidual,
                          const TensorView& dx) {
  const GradientTarget dweight = access_.gradient(weight_id);
  const TensorView dbias = bias < 0 ? TensorView{} : access_.gradient(bias).view;
  context_.run(NormBackward{.kind = config_.norm,
                            .dout = dout,
                            .x = x,
                            .weight = weight(weight_id),
                            .mean = mean.view,
                            .rstd = rstd.view,
                            .dresidual = dresidual,
                            .dx = dx,
                            .dweight = dweight.view,
                            .dbias = dbias,
                            .accumulate = dweight.accumulate,
                            .weight_offset = norm_offset()});
  access_.gradient_ready(weight_id);
  if (bias >= 0) access_.gradient_ready(bias);
}

TensorView Block::dropped(const TensorView& gradient, const BatchGeometry& batch, DropoutSite site,
                          Tensor& storage) {
  if (config_.dropout == 0) return gradient;
  storage = stream_activation(batch, "dropout gradient");
  context_.run(Dropout{gradient, storage, residual_dropout(batch, number(), site)});
  return storage;
}

TensorView Block::output_gradient(const MicroBatch& micro, DropoutSite site, Tensor& storage,
                                  Tensor& all_rows) {
  return group_.gathered(dropped(micro.gradient, micro.geometry, site, storage), all_rows,
                         {"gradient of all rows", number()});
}

void Block::put_off_output(MicroBatch& micro, const LinearWeights& linear_weights, Tensor& storage,
                           Tensor& all_rows, Tensor& x) {
  if (all_rows.view.empty()) {
    return put_off_projection(context_, micro, number(), linear_weights, storage, x);
  }
  put_off(micro, number(), linear_weights, all_rows, x);
}

Tensor Block::column_backward(MicroBatch& micro, const LinearWeights& linear_weights, Tensor& dout,
                              Tensor& norm, const char* what) {
  if (group_.overlaps() && !micro.splits_backward) {
    return overlapped_column_backward(micro.geometry, linear_weights, dout, norm, what);
  }
  Tensor all_rows;
  TensorView x;  // where it waits, its rows are brought together then
  if (!micro.splits_backward) x = group_.gathered(norm, all_rows, {"norm of all rows", number()});
  Tensor partial = activation(config_.hidden, micro.geometry, what);
  linear_backward(micro, linear_weights, dout, x, partial);
  put_off(micro, number(), linear_weights, dout, norm, &group_);
  all_rows.reset();
  return group_.summed(std::move(partial), {what, number()});
}

Tensor Block::overlapped_column_backward(const BatchGeometry& batch,
                                         const LinearWeights& linear_weights,
                                         const TensorView& dout, const TensorView& norm,
                                         const char* what) {
  TensorGroup::Arriving rows = group_.begin_gather(norm, {"norm of all rows", number()});
  Tensor partial = activation(config_.hidden, batch, what);
  context_.run(Gemm{.a = dout, .b = weight(linear_weights.weight), .c = partial});
  TensorGroup::Arriving sum = group_.begin_sum(std::move(partial), {what, number()});
  group_.arrived(rows);
  add_weight_gradient(context_, access_, linear_weights, dout, rows.view);
  group_.arrived(sum);
  return std::move(sum.storage);
}

}  // namespace zl
