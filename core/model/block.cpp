#include "core/model/block.h"

#include <cmath>
#include <utility>

#include "core/model/sparse_attention.h"
#include "core/ops/activation.h"
#include "core/ops/elementwise.h"
#include "core/ops/head_norm.h"
#include "core/ops/matmul.h"
#include "core/ops/norm.h"

namespace zl {

Block::Block(RankContext& context, ParameterAccess& access, const ModelConfig& config,
             const TensorGroup& group, const BlockParameters& parameters,
             std::shared_ptr<Rotary> rotary, int number)
    : ModelUnit(number),
      context_(context),
      access_(access),
      config_(config),
      group_(group),
      parameters_(parameters),
      rotary_(std::move(rotary)) {}

void Block::forward(MicroBatch& micro) {
  micro.stream = run_forward(std::move(micro.stream), micro.geometry, kept(micro), false);
}

Tensor Block::keep_output_only(MicroBatch& micro) {
  Kept& saved = kept(micro);
  Tensor input = std::move(saved.input);
  micro.stream.owned = std::move(saved.x2);
  forget_halves(micro, saved);
  return input;
}

void Block::forget_halves(MicroBatch& micro, Halves& saved) {
  Tensor attention, lse;
  if (micro.geometry.keeps_attention) {
    attention = std::move(saved.attention), lse = std::move(saved.lse);
  }
  micro.forget(number());
  if (attention.view.empty()) return;
  Halves& left = halves(micro);
  left.attention = std::move(attention), left.lse = std::move(lse);
}

bool Block::needs_recompute(MicroBatch& micro) { return kept(micro).norm1.view.empty(); }

void Block::restore_input(MicroBatch& micro, Tensor&& input) {
  kept(micro).input = std::move(input);
}

void Block::recompute(MicroBatch& micro, bool last) {
  Kept& saved = kept(micro);
  micro.stream = saved.input.view.empty()
                     ? run_forward(std::move(micro.stream), micro.geometry, saved, last)
                     : forward_from_input(micro.geometry, saved, last);
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
      .weight_offset = norm_offset(),
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
      .weight_offset = norm_offset(),
  });
  return after_norm1(batch, saved, last_of_recompute);
}

Tensor Block::attention_half(const BatchGeometry& batch, const TensorView& x, const char* what,
                             Halves& saved) {
  Tensor all_rows;
  saved.qkv = activation(config_.qkv_width(), batch, "qkv");
  linear(group_.gathered(x, all_rows, {what, number()}), parameters_.qkv_weight,
         parameters_.qkv_bias, saved.qkv);
  all_rows.reset();
  if (batch.extension != nullptr) {
    attend_to_cache(batch, saved);
  } else {
    heads_forward(batch, saved);
    if (saved.attention.view.empty()) attention_forward(batch, saved);
  }
  Tensor projected = summed_linear(saved.attention, projection(), batch, "attention out");
  if (batch.drop_attention) {
    saved.attention.reset();
    saved.lse.reset();
  }
  return projected;
}

Tensor Block::mlp_half(const BatchGeometry& batch, const TensorView& x, const char* what,
                       Halves& saved, bool skip_output) {
  Tensor all_rows;
  saved.up = activation(config_.ffn_in_width(), batch, "mlp up");
  linear(group_.gathered(x, all_rows, {what, number()}), parameters_.up_weight, parameters_.up_bias,
         saved.up);
  all_rows.reset();
  activation_forward(batch, saved);
  if (skip_output) return {};
  Tensor out = summed_linear(saved.act, down(), batch, "mlp out");
  if (batch.drop_activation) saved.act.reset();
  return out;
}

ResidualPair Block::after_norm1(const BatchGeometry& batch, Kept& saved, bool skip_output) {
  Tensor projected = attention_half(batch, saved.norm1, "norm1 of all rows", saved);
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
      .weight_offset = norm_offset(),
  });
  projected.reset();
  Tensor added = mlp_half(batch, saved.norm2, "norm2 of all rows", saved, skip_output);
  if (skip_output) return {};
  ResidualPair out;
  out.x = saved.x2;
  out.add = std::move(added);
  return out;
}

void Block::attention_forward(const BatchGeometry& batch, Halves& saved) {
  saved.attention = activation(config_.attention_width(), batch, "attention");
  saved.lse = statistics(batch.rows() * config_.heads, "attention log-sum-exp");
  const AttentionShape shape = attention_shape(batch);
  context_.run(AttentionForward{.qkv = packed_qkv(saved.qkv, shape),
                                .out = saved.attention.view,
                                .lse = saved.lse.view,
                                .shape = shape,
                                .scale = attention_scale(),
                                .dropout = attention_dropout(batch),
                                .mask = attention_mask(batch, batch.sequence)});
}

void Block::heads_forward(const BatchGeometry& batch, Halves& saved) {
  norm_heads(batch, saved);
  rotate(attention_shape(batch), saved.qkv, false);
}

void Block::norm_heads(const BatchGeometry& batch, Halves& saved) {
  if (config_.qk_norm) {
    const AttentionShape shape = attention_shape(batch);
    saved.heads = activation(normed_width(shape), batch, "heads before norm");
    saved.heads_rstd = statistics(batch.rows() * (shape.heads + shape.kv_heads), "head norm rstd");
    context_.run(HeadNormForward{.qkv = saved.qkv.view,
                                 .x = saved.heads.view,
                                 .q_weight = weight(parameters_.q_norm_weight),
                                 .k_weight = weight(parameters_.k_norm_weight),
                                 .rstd = saved.heads_rstd.view,
                                 .shape = shape,
                                 .epsilon = config_.norm_epsilon,
                                 .weight_offset = norm_offset()});
  }
}

void Block::rotate(const AttentionShape& shape, const TensorView& qkv, bool inverse) {
  if (config_.position != PositionKind::rope) return;
  context_.run(Rope{.qkv = qkv,
                    .shape = shape,
                    .table = rotary_->table(shape.first_position + shape.sequence),
                    .inverse = inverse});
}

void Block::activation_forward(const BatchGeometry& batch, Halves& saved) {
  saved.act = activation(config_.ffn, batch, "mlp activation");
  context_.run(
      ActivationForward{.kind = config_.activation, .x = saved.up.view, .y = saved.act.view});
}

void Block::linear(const TensorView& x, int weight_id, int bias, const TensorView& out) {
  context_.run(
      Gemm{.a = x, .b = weight(weight_id), .c = out, .bias = weight(bias), .trans_b = true});
}

Tensor Block::summed_linear(const TensorView& x, const LinearWeights& linear_weights,
                            const BatchGeometry& batch, const char* what) {
  Tensor partial = activation(config_.hidden, batch, what);
  linear(x, linear_weights.weight, group_.is_first() ? linear_weights.bias : -1, partial);
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

AttentionMask Block::attention_mask(const BatchGeometry& batch, std::int64_t keys) const {
  if (batch.sparse != nullptr) {
    AttentionMask mask = batch.sparse->mask(number() - 1);
    mask.lengths = batch.lengths;
    return mask;
  }
  if (config_.encoder) {
    return batch.lengths.empty() ? AttentionMask::full() : AttentionMask::padded(batch.lengths);
  }
  const std::int64_t window = config_.window_of(number() - 1);
  const bool hides = window > 0 && window < keys;
  return hides ? AttentionMask::sliding(window) : AttentionMask::causal();
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
