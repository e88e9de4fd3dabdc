#include "core/model/block.h"

#include <cmath>
#include <utility>

#include "core/ops/activation.h"
#include "core/ops/elementwise.h"
#include "core/ops/matmul.h"
#include "core/ops/norm.h"

namespace zl {

Block::Block(RankContext& context, ParameterAccess& access, const ModelConfig& config,
             const BlockParameters& parameters, int number)
    : ModelUnit(number),
      context_(context),
      access_(access),
      config_(config),
      parameters_(parameters) {}

void Block::forward(MicroBatch& micro) {
  micro.stream = run_forward(std::move(micro.stream), micro.geometry, kept(micro), false);
}

Tensor Block::keep_output_only(MicroBatch& micro) {
  Kept& saved = kept(micro);
  Tensor input = std::move(saved.input);
  micro.stream.owned = std::move(saved.x2);
  micro.forget(number());
  return input;
}

bool Block::needs_recompute(MicroBatch& micro) { return kept(micro).norm1.view.empty(); }

void Block::restore_input(MicroBatch& micro, Tensor input) { kept(micro).input = std::move(input); }

void Block::recompute(MicroBatch& micro, bool last) {
  Kept& saved = kept(micro);
  micro.stream = saved.input.view.empty()
                     ? run_forward(std::move(micro.stream), micro.geometry, saved, last)
                     : forward_from_input(micro.geometry, saved, last);
}

void Block::backward(MicroBatch& micro) {
  Kept& saved = kept(micro);
  mlp_backward(micro, saved);
  attention_backward(micro, saved);
  micro.forget(number());
}

ResidualPair Block::run_forward(ResidualPair stream, const BatchGeometry& batch, Kept& saved,
                                bool last_of_recompute) {
  if (stream.add.view.empty()) {
    saved.input = std::move(stream.owned);
    return forward_from_input(batch, saved, last_of_recompute);
  }
  saved.input = activation(config_.hidden, batch, "block input");
  saved.norm1 = activation(config_.hidden, batch, "norm1");
  if (config_.norm == NormKind::layer_norm) saved.mean1 = statistics(batch.rows(), "norm1 mean");
  saved.rstd1 = statistics(batch.rows(), "norm1 rstd");
  context_.run(NormForward{
      .kind = config_.norm,
      .x = stream.x,
      .add = stream.add.view,
      .sum = saved.input.view,
      .weight = weight(parameters_.norm1_weight),
      .bias = weight(parameters_.norm1_bias),
      .out = saved.norm1.view,
      .mean = saved.mean1.view,
      .rstd = saved.rstd1.view,
      .epsilon = config_.norm_epsilon,
      // The addition of the block before, under that block's key.
      .dropout = residual_dropout(batch, number() - 1, DropoutSite::mlp_out),
  });
  stream = {};
  return after_norm1(batch, saved, last_of_recompute);
}

ResidualPair Block::forward_from_input(const BatchGeometry& batch, Kept& saved,
                                       bool last_of_recompute) {
  saved.norm1 = activation(config_.hidden, batch, "norm1");
  if (config_.norm == NormKind::layer_norm) saved.mean1 = statistics(batch.rows(), "norm1 mean");
  saved.rstd1 = statistics(batch.rows(), "norm1 rstd");
  context_.run(NormForward{
      .kind = config_.norm,
      .x = saved.input.view,
      .weight = weight(parameters_.norm1_weight),
      .bias = weight(parameters_.norm1_bias),
      .out = saved.norm1.view,
      .mean = saved.mean1.view,
      .rstd = saved.rstd1.view,
      .epsilon = config_.norm_epsilon,
  });
  return after_norm1(batch, saved, last_of_recompute);
}

ResidualPair Block::after_norm1(const BatchGeometry& batch, Kept& saved, bool skip_output) {
  saved.qkv = activation(config_.qkv_width(), batch, "qkv");
  linear(saved.norm1, parameters_.qkv_weight, parameters_.qkv_bias, saved.qkv);
  if (config_.position == PositionKind::rope) {
    context_.run(Rope{.qkv = saved.qkv.view,
                      .shape = attention_shape(batch),
                      .theta = config_.rope_theta,
                      .scaling = config_.rope_scaling});
  }
  attention_forward(batch, saved);
  Tensor projected = activation(config_.hidden, batch, "attention out");
  linear(saved.attention, parameters_.out_weight, parameters_.out_bias, projected);
  if (batch.drop_attention) {
    saved.attention.reset();
    saved.lse.reset();
  }
  saved.x2 = activation(config_.hidden, batch, "residual");
  saved.norm2 = activation(config_.hidden, batch, "norm2");
  if (config_.norm == NormKind::layer_norm) saved.mean2 = statistics(batch.rows(), "norm2 mean");
  saved.rstd2 = statistics(batch.rows(), "norm2 rstd");
  context_.run(NormForward{
      .kind = config_.norm,
      .x = saved.input.view,
      .add = projected.view,
      .sum = saved.x2.view,
      .weight = weight(parameters_.norm2_weight),
      .bias = weight(parameters_.norm2_bias),
      .out = saved.norm2.view,
      .mean = saved.mean2.view,
      .rstd = saved.rstd2.view,
      .epsilon = config_.norm_epsilon,
      .dropout = residual_dropout(batch, number(), DropoutSite::attention_out),
  });
  projected.reset();
  saved.up = activation(config_.ffn_in_width(), batch, "mlp up");
  linear(saved.norm2, parameters_.up_weight, parameters_.up_bias, saved.up);
  activation_forward(batch, saved);
  if (skip_output) return {};
  ResidualPair out;
  out.x = saved.x2;
  out.add = activation(config_.hidden, batch, "mlp out");
  linear(saved.act, parameters_.down_weight, parameters_.down_bias, out.add);
  if (batch.drop_activation) saved.act.reset();
  return out;
}

void Block::attention_forward(const BatchGeometry& batch, Kept& saved) {
  saved.attention = activation(config_.attention_width(), batch, "attention");
  saved.lse = statistics(batch.rows() * config_.heads, "attention log-sum-exp");
  const AttentionShape shape = attention_shape(batch);
  context_.run(AttentionForward{.qkv = packed_qkv(saved.qkv, shape),
                                .out = saved.attention.view,
                                .lse = saved.lse.view,
                                .shape = shape,
                                .scale = attention_scale(),
                                .dropout = attention_dropout(batch)});
}

void Block::activation_forward(const BatchGeometry& batch, Kept& saved) {
  saved.act = activation(config_.ffn, batch, "mlp activation");
  context_.run(
      ActivationForward{.kind = config_.activation, .x = saved.up.view, .y = saved.act.view});
}

void Block::mlp_backward(MicroBatch& micro, Kept& saved) {
  const BatchGeometry& batch = micro.geometry;
  const TensorView gradient = micro.gradient;
  if (saved.act.view.empty()) activation_forward(batch, saved);
  Tensor storage;
  const TensorView dout = dropped(gradient, batch, DropoutSite::mlp_out, storage);
  Tensor dact = activation(config_.ffn, batch, "mlp activation gradient");
  linear_backward(micro, down(), dout, saved.act, dact);
  put_off_projection(context_, micro, number(), down(), storage, saved.act);
  storage.reset();
  saved.act.reset();
  // In place where widths agree, so that a device may fuse it with the product that made dact.
  const bool gated = config_.activation == ActivationKind::swiglu;
  context_.run(ActivationBackward{.kind = config_.activation,
                                  .x = saved.up.view,
                                  .dy = dact.view,
                                  .dx = gated ? saved.up.view : dact.view});
  if (!gated) std::swap(saved.up, dact);
  dact.reset();
  Tensor dnorm = activation(config_.hidden, batch, "norm2 gradient");
  linear_backward(micro, up(), saved.up, saved.norm2, dnorm);
  put_off(micro, number(), up(), saved.up, saved.norm2);
  saved.up.reset();
  saved.norm2.reset();
  norm_backward(dnorm, saved.x2, parameters_.norm2_weight, parameters_.norm2_bias, saved.mean2,
                saved.rstd2, gradient, micro.gradient);
  saved.x2.reset();
}

void Block::attention_backward(MicroBatch& micro, Kept& saved) {
  const BatchGeometry& batch = micro.geometry;
  const TensorView gradient = micro.gradient;
  if (saved.attention.view.empty()) attention_forward(batch, saved);
  Tensor storage;
  const TensorView dout = dropped(gradient, batch, DropoutSite::attention_out, storage);
  Tensor dattention = activation(config_.attention_width(), batch, "attention gradient");
  linear_backward(micro, projection(), dout, saved.attention, dattention);
  if (!micro.splits_backward) storage.reset();
  Tensor dqkv = activation(config_.qkv_width(), batch, "qkv gradient");
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
                                 .dropout = attention_dropout(batch)});
  dattention.reset();
  delta.reset();
  put_off_projection(context_, micro, number(), projection(), storage, saved.attention);
  saved.attention.reset();
  saved.lse.reset();
  saved.qkv.reset();
  if (config_.position == PositionKind::rope) {
    context_.run(Rope{.qkv = dqkv.view,
                      .shape = attention_shape(batch),
                      .theta = config_.rope_theta,
                      .inverse = true,
                      .scaling = config_.rope_scaling});
  }
  Tensor dnorm = activation(config_.hidden, batch, "norm1 gradient");
  linear_backward(micro, qkv(), dqkv, saved.norm1, dnorm);
  put_off(micro, number(), qkv(), dqkv, saved.norm1);
  norm_backward(dnorm, saved.input, parameters_.norm1_weight, parameters_.norm1_bias, saved.mean1,
                saved.rstd1, gradient, micro.gradient);
}

void Block::linear(const TensorView& x, int weight_id, int bias, const TensorView& out) {
  context_.run(
      Gemm{.a = x, .b = weight(weight_id), .c = out, .bias = weight(bias), .trans_b = true});
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
                            .accumulate = dweight.accumulate});
  access_.gradient_ready(weight_id);
  if (bias >= 0) access_.gradient_ready(bias);
}

TensorView Block::dropped(const TensorView& gradient, const BatchGeometry& batch, DropoutSite site,
                          Tensor& storage) {
  if (config_.dropout == 0) return gradient;
  storage = activation(config_.hidden, batch, "dropout gradient");
  context_.run(Dropout{gradient, storage, residual_dropout(batch, number(), site)});
  return storage;
}

Tensor Block::activation(std::int64_t columns, const BatchGeometry& batch, const char* what) {
  return context_.allocate(batch.dtype, {batch.rows(), columns}, MemoryTag::activation,
                           {what, number()});
}

Tensor Block::statistics(std::int64_t count, const char* what) {
  return context_.allocate(DType::f32, Shape{count}, MemoryTag::activation, {what, number()});
}

DropoutSpec Block::residual_dropout(const BatchGeometry& batch, int unit, DropoutSite site) const {
  return dropout_spec(config_.dropout, batch, unit, site, batch.sequence * config_.hidden);
}

DropoutSpec Block::attention_dropout(const BatchGeometry& batch) const {
  return dropout_spec(config_.attention_dropout, batch, number(), DropoutSite::attention,
                      config_.heads * batch.sequence * batch.sequence);
}

double Block::attention_scale() const {
  return 1.0 / std::sqrt(static_cast<double>(config_.head_size));
}

AttentionShape Block::attention_shape(const BatchGeometry& batch) const {
  return {batch.batch, batch.sequence, config_.heads, config_.kv_heads, config_.head_size};
}

}  // namespace zl
