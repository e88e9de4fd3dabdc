#include "core/model/block.h"

#include <cmath>
#include <utility>

#include "core/ops/activation.h"
#include "core/ops/elementwise.h"
#include "core/ops/matmul.h"
#include "core/ops/norm.h"

namespace zl {

Block::Block(RankContext& context, ParameterAccess& access, const ModelConfig& config,
             const TensorGroup& group, const BlockParameters& parameters, int number)
    : ModelUnit(number),
      context_(context),
      access_(access),
      config_(config),
      group_(group),
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
  mlp_backward(micro.gradient, micro.geometry, saved);
  attention_backward(micro.gradient, micro.geometry, saved);
  micro.forget(number());
}

ResidualPair Block::run_forward(ResidualPair stream, const BatchGeometry& batch, Kept& saved,
                                bool last_of_recompute) {
  if (stream.add.view.empty()) {
    saved.input = std::move(stream.owned);
    return forward_from_input(batch, saved, last_of_recompute);
  }
  saved.input = stream_activation(batch, "block input");
  saved.norm1 = stream_activation(batch, "norm1");
  if (config_.norm == NormKind::layer_norm) {
    saved.mean1 = statistics(batch.stream_rows(), "norm1 mean");
  }
  saved.rstd1 = statistics(batch.stream_rows(), "norm1 rstd");
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
  saved.norm1 = stream_activation(batch, "norm1");
  if (config_.norm == NormKind::layer_norm) {
    saved.mean1 = statistics(batch.stream_rows(), "norm1 mean");
  }
  saved.rstd1 = statistics(batch.stream_rows(), "norm1 rstd");
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
  Tensor all_rows;
  saved.qkv = activation(config_.qkv_width(), batch, "qkv");
  linear(group_.gathered(saved.norm1, all_rows, {"norm1 of all rows", number()}),
         parameters_.qkv_weight, parameters_.qkv_bias, saved.qkv);
  all_rows.reset();
  if (config_.position == PositionKind::rope) {
    context_.run(Rope{.qkv = saved.qkv.view,
                      .shape = attention_shape(batch),
                      .theta = config_.rope_theta,
                      .scaling = config_.rope_scaling});
  }
  attention_forward(batch, saved);
  Tensor projected = summed_linear(saved.attention, parameters_.out_weight, parameters_.out_bias,
                                   batch, "attention out");
  if (batch.drop_attention) {
    saved.attention.reset();
    saved.lse.reset();
  }
  saved.x2 = stream_activation(batch, "residual");
  saved.norm2 = stream_activation(batch, "norm2");
  if (config_.norm == NormKind::layer_norm) {
    saved.mean2 = statistics(batch.stream_rows(), "norm2 mean");
  }
  saved.rstd2 = statistics(batch.stream_rows(), "norm2 rstd");
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
  linear(group_.gathered(saved.norm2, all_rows, {"norm2 of all rows", number()}),
         parameters_.up_weight, parameters_.up_bias, saved.up);
  all_rows.reset();
  activation_forward(batch, saved);
  if (skip_output) return {};
  ResidualPair out;
  out.x = saved.x2;
  out.add =
      summed_linear(saved.act, parameters_.down_weight, parameters_.down_bias, batch, "mlp out");
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

void Block::mlp_backward(const TensorView& gradient, const BatchGeometry& batch, Kept& saved) {
  if (saved.act.view.empty()) activation_forward(batch, saved);
  Tensor storage;
  Tensor all_rows;
  const TensorView dout = group_.gathered(dropped(gradient, batch, DropoutSite::mlp_out, storage),
                                          all_rows, {"gradient of all rows", number()});
  Tensor dact = activation(config_.ffn, batch, "mlp activation gradient");
  linear_backward(dout, saved.act, parameters_.down_weight, parameters_.down_bias, dact);
  storage.reset();
  all_rows.reset();
  saved.act.reset();
  // In place where widths agree, so that a device may fuse it with the product that made dact.
  const bool gated = config_.activation == ActivationKind::swiglu;
  context_.run(ActivationBackward{.kind = config_.activation,
                                  .x = saved.up.view,
                                  .dy = dact.view,
                                  .dx = gated ? saved.up.view : dact.view});
  if (!gated) std::swap(saved.up, dact);
  dact.reset();
  Tensor dnorm = column_backward(saved.up, saved.norm2, parameters_.up_weight, parameters_.up_bias,
                                 batch, "norm2 gradient");
  saved.up.reset();
  saved.norm2.reset();
  norm_backward(dnorm, saved.x2, parameters_.norm2_weight, parameters_.norm2_bias, saved.mean2,
                saved.rstd2, gradient);
  saved.x2.reset();
}

void Block::attention_backward(const TensorView& gradient, const BatchGeometry& batch,
                               Kept& saved) {
  if (saved.attention.view.empty()) attention_forward(batch, saved);
  Tensor storage;
  Tensor all_rows;
  const TensorView dout =
      group_.gathered(dropped(gradient, batch, DropoutSite::attention_out, storage), all_rows,
                      {"gradient of all rows", number()});
  Tensor dattention = activation(config_.attention_width(), batch, "attention gradient");
  linear_backward(dout, saved.attention, parameters_.out_weight, parameters_.out_bias, dattention);
  storage.reset();
  all_rows.reset();
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
  Tensor dnorm = column_backward(dqkv, saved.norm1, parameters_.qkv_weight, parameters_.qkv_bias,
                                 batch, "norm1 gradient");
  norm_backward(dnorm, saved.input, parameters_.norm1_weight, parameters_.norm1_bias, saved.mean1,
                saved.rstd1, gradient);
}

void Block::linear(const TensorView& x, int weight_id, int bias, const TensorView& out) {
  context_.run(
      Gemm{.a = x, .b = weight(weight_id), .c = out, .bias = weight(bias), .trans_b = true});
}

void Block::linear_backward(const TensorView& dout, const TensorView& x, int weight_id, int bias,
                            const TensorView& dx) {
  const GradientTarget dweight = access_.gradient(weight_id);
  context_.run(Gemm{
      .a = dout, .b = x, .c = dweight.view, .trans_a = true, .accumulate = dweight.accumulate});
  access_.gradient_ready(weight_id);
  if (bias >= 0) {
    const GradientTarget dbias = access_.gradient(bias);
    context_.run(BiasBackward{.dout = dout, .dbias = dbias.view, .accumulate = dbias.accumulate});
    access_.gradient_ready(bias);
  }
  context_.run(Gemm{.a = dout, .b = weight(weight_id), .c = dx});
}

void Block::norm_backward(const TensorView& dout, const TensorView& x, int weight_id, int bias,
                          const Tensor& mean, const Tensor& rstd, const TensorView& gradient) {
  const GradientTarget dweight = access_.gradient(weight_id);
  const TensorView dbias = bias < 0 ? TensorView{} : access_.gradient(bias).view;
  context_.run(NormBackward{.kind = config_.norm,
                            .dout = dout,
                            .x = x,
                            .weight = weight(weight_id),
                            .mean = mean.view,
                            .rstd = rstd.view,
                            .dresidual = gradient,
                            .dx = gradient,
                            .dweight = dweight.view,
                            .dbias = dbias,
                            .accumulate = dweight.accumulate});
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

Tensor Block::summed_linear(const TensorView& x, int weight_id, int bias,
                            const BatchGeometry& batch, const char* what) {
  Tensor partial = activation(config_.hidden, batch, what);
  linear(x, weight_id, group_.is_first() ? bias : -1, partial);
  return group_.summed(std::move(partial), {what, number()});
}

Tensor Block::column_backward(const TensorView& dout, const TensorView& norm, int weight_id,
                              int bias, const BatchGeometry& batch, const char* what) {
  Tensor all_rows;
  const TensorView x = group_.gathered(norm, all_rows, {"norm of all rows", number()});
  Tensor partial = activation(config_.hidden, batch, what);
  linear_backward(dout, x, weight_id, bias, partial);
  all_rows.reset();
  return group_.summed(std::move(partial), {what, number()});
}

Tensor Block::stream_activation(const BatchGeometry& batch, const char* what) {
  return context_.allocate(batch.dtype, {batch.stream_rows(), config_.hidden},
                           MemoryTag::activation, {what, number()});
}

Tensor Block::activation(std::int64_t columns, const BatchGeometry& batch, const char* what) {
  return context_.allocate(batch.dtype, {batch.rows(), columns}, MemoryTag::activation,
                           {what, number()});
}

Tensor Block::statistics(std::int64_t count, const char* what) {
  return context_.allocate(DType::f32, Shape{count}, MemoryTag::activation, {what, number()});
}

DropoutSpec Block::residual_dropout(const BatchGeometry& batch, int unit, DropoutSite site) const {
  return stream_dropout(config_.dropout, batch, unit, site, config_.hidden);
}

DropoutSpec Block::attention_dropout(const BatchGeometry& batch) const {
  return dropout_spec(config_.attention_dropout, batch, number(), DropoutSite::attention,
                      group_.shard().ranks * config_.heads * batch.sequence * batch.sequence);
}

double Block::attention_scale() const {
  return 1.0 / std::sqrt(static_cast<double>(config_.head_size));
}

AttentionShape Block::attention_shape(const BatchGeometry& batch) const {
  AttentionShape shape{batch.batch, batch.sequence, config_.heads, config_.kv_heads,
                       config_.head_size};
  if (group_.has_others()) {
    shape.all_heads = group_.shard().ranks * config_.heads;
    shape.first_head = group_.shard().rank * config_.heads;
  }
  return shape;
}

}  // namespace zl
