#include "core/model/post_norm_block.h"

#include <utility>

#include "core/ops/elementwise.h"
#include "core/ops/norm.h"

namespace zl {

void PostNormBlock::forward(MicroBatch& micro) {
  Kept& saved = kept(micro);
  saved.input = std::move(micro.stream.owned);
  ResidualPair out;
  out.owned = run_forward(micro.geometry, saved);
  out.x = out.owned.view;
  micro.stream = std::move(out);
}

Tensor PostNormBlock::keep_output_only(MicroBatch& micro) {
  Tensor input = std::move(kept(micro).input);
  forget_halves(micro, kept(micro));
  return input;
}

bool PostNormBlock::needs_recompute(MicroBatch& micro) {
  return kept(micro).norm2.sum.view.empty();
}

void PostNormBlock::restore_input(MicroBatch& micro, Tensor&& input) {
  kept(micro).input = std::move(input);
}

// The last of a group makes its output too: the statistics of its second norm come with it.
void PostNormBlock::recompute(MicroBatch& micro, bool last) {
  Kept& saved = kept(micro);
  if (saved.input.view.empty()) saved.input = std::move(micro.stream.owned);
  ResidualPair out;
  out.owned = run_forward(micro.geometry, saved);
  out.x = out.owned.view;
  micro.stream = last ? ResidualPair{} : std::move(out);
}

Tensor PostNormBlock::run_forward(const BatchGeometry& batch, Kept& saved) {
  Tensor added = attention_half(batch, saved.input, "block input", saved);
  saved.x1 =
      add_and_norm(batch, saved.input, added, DropoutSite::attention_out, "norm1", saved.norm1);
  added.reset();
  added = mlp_half(batch, saved.x1, "norm1", saved, false);
  return add_and_norm(batch, saved.x1, added, DropoutSite::mlp_out, "norm2", saved.norm2);
}

Tensor PostNormBlock::add_and_norm(const BatchGeometry& batch, const TensorView& x,
                                   const TensorView& added, DropoutSite site, const char* what,
                                   Norm& norm) {
  const bool first = site == DropoutSite::attention_out;
  norm.sum = stream_activation(batch, "residual sum");
  Tensor out = stream_activation(batch, what);
  norm.mean = statistics(batch.stream_rows(), "norm mean");
  norm.rstd = statistics(batch.stream_rows(), "norm rstd");
  context().run(NormForward{
      .kind = config().norm,
      .x = x,
      .add = added,
      .sum = norm.sum.view,
      .weight = weight(first ? parameters().norm1_weight : parameters().norm2_weight),
      .bias = weight(first ? parameters().norm1_bias : parameters().norm2_bias),
      .out = out.view,
      .mean = norm.mean.view,
      .rstd = norm.rstd.view,
      .epsilon = config().norm_epsilon,
      .dropout = residual_dropout(batch, number(), site),
  });
  return out;
}

void PostNormBlock::norm_gradient(MicroBatch& micro, Norm& norm, bool first) {
  norm_backward(micro.gradient, norm.sum,
                first ? parameters().norm1_weight : parameters().norm2_weight,
                first ? parameters().norm1_bias : parameters().norm2_bias, norm.mean, norm.rstd, {},
                micro.gradient);
  norm = {};
}

// What a norm normalises is the sum of a half's input and output: both have its gradient, and the
// input that of the half besides.
void PostNormBlock::backward(MicroBatch& micro) {
  Kept& saved = kept(micro);
  norm_gradient(micro, saved.norm2, false);
  TensorView of_sum = micro.gradient;
  Tensor dx = mlp_half_backward(micro, saved, saved.x1, "norm1 gradient");
  context().run(Axpy{.x = of_sum, .y = dx, .accumulate = true});
  micro.gradient = std::move(dx);

  norm_gradient(micro, saved.norm1, true);
  of_sum = micro.gradient;
  Tensor dqkv;
  dx = attention_half_backward(micro, saved, saved.input, dqkv, "block input gradient");
  context().run(Axpy{.x = of_sum, .y = dx, .accumulate = true});
  micro.gradient = std::move(dx);
  micro.forget(number());
}

}  // namespace zl
