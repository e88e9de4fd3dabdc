#include "core/model/block.h"
#include "core/ops/activation.h"
#include "core/ops/elementwise.h"
#include "core/ops/matmul.h"
#include "core/ops/norm.h"

#include <cmath>
#include <utility>

namespace zl {

DropoutSpec dropout_spec(double p, const BatchGeometry& batch, int unit, DropoutSite site,
                         std::int64_t elements_per_sample) {
  DropoutSpec spec;
  spec.p = static_cast<float>(p);
  spec.key = {batch.seed, batch.micro_step,
              static_cast<std::uint32_t>(unit) * 16 + static_cast<std::uint32_t>(site)};
  spec.base = static_cast<std::uint64_t>(batch.first_sample * elements_per_sample);
  return spec;
}

Block::Block(RankContext& context, ParameterAccess& access, const ModelConfig& config,
             const BlockParameters& parameters, int unit)
    : context_(context), access_(access), config_(config), parameters_(parameters), unit_(unit) {}

ResidualPair Block::forward(ResidualPair stream, const BatchGeometry& batch,
                            BlockActivations& saved, bool last_of_recompute) {
  if (stream.add.view.empty()) {
    saved.input = std::move(stream.owned);
    return forward_from_input(batch, saved, last_of_recompute);
  }
  saved.input = activation(config_.hidden, batch, "block input");
  saved.norm1 = activation(config_.hidden, batch, "norm1");
  if (config_.norm == NormKind::layer_norm) saved.mean1 = statistics(batch.rows(), "norm1 mean");
  saved.rstd1 = statistics(batch.rows(), "norm1 rstd");
  const DropoutSpec dropout = dropout_spec(config_.dropout, batch, unit_ - 1, DropoutSite::mlp_out,
                                           batch.sequence * config_.hidden);
  context_.run(NormForward{config_.norm, stream.x, stream.add, saved.input,
                           weight(parameters_.norm1_weight), weight(parameters_.norm1_bias),
                           saved.norm1, saved.mean1, saved.rstd1, config_.norm_epsilon, dropout});
  stream = {};
  return after_norm1(batch, saved, last_of_recompute);
}

ResidualPair Block::forward_from_input(const BatchGeometry& batch, BlockActivations& saved,
                                       bool last_of_recompute) {
  saved.norm1 = activation(config_.hidden, batch, "norm1");
  if (config_.norm == NormKind::layer_norm) saved.mean1 = statistics(batch.rows(), "norm1 mean");
  saved.rstd1 = statistics(batch.rows(), "norm1 rstd");
  context_.run(NormForward{config_.norm,
                           saved.input,
                           {},
                           {},
                           weight(parameters_.norm1_weight),
                           weight(parameters_.norm1_bias),
                           saved.norm1,
                           saved.mean1,
                           saved.rstd1,
                           config_.norm_epsilon,
                           {}});
  return after_norm1(batch, saved, last_of_recompute);
}

ResidualPair Block::after_norm1(const BatchGeometry& batch, BlockActivations& saved,
                                bool skip_output) {
  saved.qkv = activation(config_.qkv_width(), batch, "qkv");
  linear(saved.norm1, parameters_.qkv_weight, parameters_.qkv_bias, saved.qkv);
  if (config_.position == PositionKind::rope) {
    context_.run(
        Rope{saved.qkv, attention_shape(batch), config_.rope_theta, false, config_.rope_scaling});
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
  const DropoutSpec dropout = dropout_spec(
      config_.dropout, batch, unit_, DropoutSite::attention_out, batch.sequence * config_.hidden);
  context_.run(NormForward{config_.norm, saved.input, projected, saved.x2,
                           weight(parameters_.norm2_weight), weight(parameters_.norm2_bias),
                           saved.norm2, saved.mean2, saved.rstd2, config_.norm_epsilon, dropout});
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

void Block::attention_forward(const BatchGeometry& batch, BlockActivations& saved) {
  saved.attention = activation(config_.attention_width(), batch, "attention");
  saved.lse = statistics(batch.rows() * config_.heads, "attention log-sum-exp");
  const DropoutSpec dropout =
      dropout_spec(config_.attention_dropout, batch, unit_, DropoutSite::attention,
                   config_.heads * batch.sequence * batch.sequence);
  const AttentionShape shape = attention_shape(batch);
  context_.run(AttentionForward{packed_qkv(saved.qkv, shape), saved.attention, saved.lse, shape,
                                1.0 / std::sqrt(static_cast<double>(config_.head_size)), dropout});
}

void Block::activation_forward(const BatchGeometry& batch, BlockActivations& saved) {
  saved.act = activation(config_.ffn, batch, "mlp activation");
  context_.run(ActivationForward{config_.activation, saved.up, saved.act});
}

void Block::backward(const TensorView& gradient, const BatchGeometry& batch,
                     BlockActivations& saved) {
  mlp_backward(gradient, batch, saved);
  attention_backward(gradient, batch, saved);
  saved = {};
}

void Block::mlp_backward(const TensorView& gradient, const BatchGeometry& batch,
                         BlockActivations& saved) {
  if (saved.act.view.empty()) activation_forward(batch, saved);
  Tensor storage;
  const TensorView dout = dropped(gradient, batch, DropoutSite::mlp_out, storage);
  Tensor dact = activation(config_.ffn, batch, "mlp activation gradient");
  linear_backward(dout, saved.act, parameters_.down_weight, parameters_.down_bias, dact);
  storage.reset();
  saved.act.reset();
  // In place where widths agree, so that a device may fuse it with the product that made dact.
  const bool gated = config_.activation == ActivationKind::swiglu;
  context_.run(ActivationBackward{config_.activation, saved.up, dact, gated ? saved.up : dact});
  if (!gated) std::swap(saved.up, dact);
  dact.reset();
  Tensor dnorm = activation(config_.hidden, batch, "norm2 gradient");
  linear_backward(saved.up, saved.norm2, parameters_.up_weight, parameters_.up_bias, dnorm);
  saved.up.reset();
  saved.norm2.reset();
  norm_backward(dnorm, saved.x2, parameters_.norm2_weight, parameters_.norm2_bias, saved.mean2,
                saved.rstd2, gradient);
  saved.x2.reset();
}

void Block::attention_backward(const TensorView& gradient, const BatchGeometry& batch,
                               BlockActivations& saved) {
  if (saved.attention.view.empty()) attention_forward(batch, saved);
  Tensor storage;
  const TensorView dout = dropped(gradient, batch, DropoutSite::attention_out, storage);
  Tensor dattention = activation(config_.attention_width(), batch, "attention gradient");
  linear_backward(dout, saved.attention, parameters_.out_weight, parameters_.out_bias, dattention);
  storage.reset();
  Tensor dqkv = activation(config_.qkv_width(), batch, "qkv gradient");
  Tensor delta = statistics(batch.rows() * config_.heads, "attention delta");
  const DropoutSpec dropout =
      dropout_spec(config_.attention_dropout, batch, unit_, DropoutSite::attention,
                   config_.heads * batch.sequence * batch.sequence);
  const AttentionShape shape = attention_shape(batch);
  context_.run(AttentionBackward{dattention, saved.attention, packed_qkv(saved.qkv, shape),
                                 saved.lse, packed_qkv(dqkv, shape), delta, shape,
                                 1.0 / std::sqrt(static_cast<double>(config_.head_size)), dropout});
  dattention.reset();
  delta.reset();
  saved.attention.reset();
  saved.lse.reset();
  saved.qkv.reset();
  if (config_.position == PositionKind::rope) {
    context_.run(
        Rope{dqkv, attention_shape(batch), config_.rope_theta, true, config_.rope_scaling});
  }
  Tensor dnorm = activation(config_.hidden, batch, "norm1 gradient");
  linear_backward(dqkv, saved.norm1, parameters_.qkv_weight, parameters_.qkv_bias, dnorm);
  norm_backward(dnorm, saved.input, parameters_.norm1_weight, parameters_.norm1_bias, saved.mean1,
                saved.rstd1, gradient);
}

void Block::linear(const TensorView& x, int weight_id, int bias, const TensorView& out) {
  context_.run(Gemm{x, weight(weight_id), out, weight(bias), false, true, false});
}

void Block::linear_backward(const TensorView& dout, const TensorView& x, int weight_id, int bias,
                            const TensorView& dx) {
  const GradientTarget dweight = access_.gradient(weight_id);
  context_.run(Gemm{dout, x, dweight.view, {}, true, false, dweight.accumulate});
  access_.gradient_ready(weight_id);
  if (bias >= 0) {
    const GradientTarget dbias = access_.gradient(bias);
    context_.run(BiasBackward{dout, dbias.view, dbias.accumulate});
    access_.gradient_ready(bias);
  }
  context_.run(Gemm{dout, weight(weight_id), dx, {}, false, false, false});
}

void Block::norm_backward(const TensorView& dout, const TensorView& x, int weight_id, int bias,
                          const Tensor& mean, const Tensor& rstd, const TensorView& gradient) {
  const GradientTarget dweight = access_.gradient(weight_id);
  const TensorView dbias = bias < 0 ? TensorView{} : access_.gradient(bias).view;
  context_.run(NormBackward{config_.norm, dout, x, weight(weight_id), mean, rstd, gradient,
                            gradient, dweight.view, dbias, dweight.accumulate});
  access_.gradient_ready(weight_id);
  if (bias >= 0) access_.gradient_ready(bias);
}

TensorView Block::dropped(const TensorView& gradient, const BatchGeometry& batch, DropoutSite site,
                          Tensor& storage) {
  if (config_.dropout == 0) return gradient;
  storage = activation(config_.hidden, batch, "dropout gradient");
  context_.run(
      Dropout{gradient, storage,
              dropout_spec(config_.dropout, batch, unit_, site, batch.sequence * config_.hidden)});
  return storage;
}

Tensor Block::activation(std::int64_t columns, const BatchGeometry& batch, const char* what) {
  return context_.allocate(batch.dtype, {batch.rows(), columns}, MemoryTag::activation,
                           {what, unit_});
}

Tensor Block::statistics(std::int64_t count, const char* what) {
  return context_.allocate(DType::f32, Shape{count}, MemoryTag::activation, {what, unit_});
}

AttentionShape Block::attention_shape(const BatchGeometry& batch) const {
  return {batch.batch, batch.sequence, config_.heads, config_.kv_heads, config_.head_size};
}

}  // namespace zl
