// Gradients of products, embeddings, norms, activations and the loss.
#include "tests/conformance/gradient.h"

#include <string>

namespace zl::test {
namespace {

TEST_F(Gradient, Gemm) {
  // y = x W^T + b: dx = dy W, dW = dy^T x, db = column sums of dy.
  const TensorView x = normal({17, 5}), weight = normal({9, 5}), bias = normal({9});
  const TensorView y = zeros({17, 9}), dy = normal({17, 9});
  const auto loss = [&] {
    run(Gemm{.a = x, .b = weight, .c = y, .bias = bias, .trans_b = true});
    return dot(y, dy);
  };
  const TensorView dx = zeros(x.shape), dweight = zeros(weight.shape), dbias = zeros(bias.shape);
  run(Gemm{.a = dy, .b = weight, .c = dx, .bias = {}});
  run(Gemm{.a = dy, .b = x, .c = dweight, .bias = {}, .trans_a = true});
  run(BiasBackward{dy, dbias});
  check("dx", loss, x, dx);
  check("dweight", loss, weight, dweight);
  check("dbias", loss, bias, dbias);
}

TEST_F(Gradient, Embedding) {
  EmbeddingForward forward;
  forward.sequence = 6;
  forward.tokens = w.integers({18}, 0, 4);
  forward.wte = normal({7, 5});
  forward.wpe = normal({8, 5});
  forward.scale = 2.5;
  forward.out = zeros({18, 5});
  forward.dropout = w.dropout(0.3f);
  const TensorView dout = normal({18, 5});
  const auto loss = [&] {
    run(forward);
    return dot(forward.out, dout);
  };
  const TensorView dwte = zeros({7, 5}), dwpe = zeros({8, 5});
  EmbeddingBackward backward{forward.tokens, dout, dwte, dwpe, forward.sequence, forward.dropout};
  backward.scale = forward.scale;
  run(backward);
  check("dwte", loss, forward.wte, dwte);
  check("dwpe", loss, forward.wpe, dwpe);
}

class NormGradient : public Gradient, public testing::WithParamInterface<NormKind> {};

// Loss through both outputs: the normalised one and the residual stream `sum`.
TEST_P(NormGradient, WithResidualAndDropout) {
  const bool layer_norm = GetParam() == NormKind::layer_norm;
  const Shape shape{5, 17}, row{17}, column{5};
  NormForward forward;
  forward.kind = GetParam();
  forward.x = normal(shape);
  forward.add = normal(shape);
  forward.sum = zeros(shape);
  forward.weight = normal(row);
  forward.out = zeros(shape);
  forward.rstd = zeros(column);
  if (layer_norm) forward.bias = normal(row), forward.mean = zeros(column);
  forward.dropout = w.dropout(0.25f);
  const TensorView dout = normal(shape), dsum = normal(shape);
  const auto loss = [&] {
    run(forward);
    return dot(forward.out, dout) + dot(forward.sum, dsum);
  };
  loss();
  NormBackward backward;
  backward.kind = GetParam();
  backward.dout = dout;
  backward.x = forward.sum;
  backward.weight = forward.weight;
  backward.mean = forward.mean;
  backward.rstd = forward.rstd;
  backward.dresidual = dsum;
  backward.dx = zeros(shape);
  backward.dweight = zeros(row);
  if (layer_norm) backward.dbias = zeros(row);
  run(backward);
  const TensorView dadd = zeros(shape);
  run(Dropout{backward.dx, dadd, forward.dropout});
  check("dx", loss, forward.x, backward.dx);
  check("dadd", loss, forward.add, dadd);
  check("dweight", loss, forward.weight, backward.dweight);
  if (layer_norm) check("dbias", loss, forward.bias, backward.dbias);
}

TEST_P(NormGradient, WithoutResidual) {
  const bool layer_norm = GetParam() == NormKind::layer_norm;
  const Shape shape{3, 65}, row{65}, column{3};
  NormForward forward;
  forward.kind = GetParam();
  forward.x = normal(shape);
  forward.weight = normal(row);
  forward.out = zeros(shape);
  forward.rstd = zeros(column);
  forward.weight_offset = 1;
  if (layer_norm) forward.bias = normal(row), forward.mean = zeros(column);
  const TensorView dout = normal(shape);
  const auto loss = [&] {
    run(forward);
    return dot(forward.out, dout);
  };
  loss();
  NormBackward backward;
  backward.kind = GetParam();
  backward.dout = dout;
  backward.x = forward.x;
  backward.weight = forward.weight;
  backward.mean = forward.mean;
  backward.rstd = forward.rstd;
  backward.weight_offset = 1;
  backward.dx = zeros(shape);
  backward.dweight = zeros(row);
  if (layer_norm) backward.dbias = zeros(row);
  run(backward);
  check("dx", loss, forward.x, backward.dx);
  check("dweight", loss, forward.weight, backward.dweight);
}

INSTANTIATE_TEST_SUITE_P(Norms, NormGradient,
                         testing::Values(NormKind::layer_norm, NormKind::rms_norm),
                         [](const auto& p) {
                           return p.param == NormKind::layer_norm ? "layer_norm" : "rms_norm";
                         });

class ActivationGradient : public Gradient, public testing::WithParamInterface<ActivationKind> {};

TEST_P(ActivationGradient, Input) {
  const std::int64_t factor = is_gated(GetParam()) ? 2 : 1;
  const TensorView x = normal({6, 17 * factor}), y = zeros({6, 17}), dy = normal({6, 17});
  const auto loss = [&] {
    run(ActivationForward{GetParam(), x, y});
    return dot(y, dy);
  };
  const TensorView dx = zeros(x.shape);
  run(ActivationBackward{GetParam(), x, dy, dx});
  check("dx", loss, x, dx);
}

std::string name_of(ActivationKind kind) {
  switch (kind) {
    case ActivationKind::gelu_tanh:
      return "gelu_tanh";
    case ActivationKind::gelu_erf:
      return "gelu_erf";
    case ActivationKind::geglu_tanh:
      return "geglu_tanh";
    case ActivationKind::tanh:
      return "tanh";
    default:
      return "swiglu";
  }
}

INSTANTIATE_TEST_SUITE_P(Kinds, ActivationGradient,
                         testing::Values(ActivationKind::gelu_tanh, ActivationKind::gelu_erf,
                                         ActivationKind::swiglu, ActivationKind::geglu_tanh,
                                         ActivationKind::tanh),
                         [](const auto& p) { return name_of(p.param); });

TEST_F(Gradient, CrossEntropy) {
  CrossEntropy op;
  op.logits = normal({6, 21});
  op.targets = w.integers({6}, 0, 16);
  set(op.targets, 2, -1);
  op.losses = zeros({6});
  op.vocab = 17;
  op.grad_scale = 0.75f;
  op.write_gradient = false;
  const TensorView sum = zeros({1});
  const auto loss = [&] {
    run(op);
    run(Sum{op.losses, sum, 0.75});
    return get(sum, 0);
  };
  CrossEntropy backward = op;
  backward.logits = w.copy(op.logits);
  backward.write_gradient = true;
  run(backward);
  check("dlogits", loss, op.logits, backward.logits);
}

}  // namespace
}  // namespace zl::test
