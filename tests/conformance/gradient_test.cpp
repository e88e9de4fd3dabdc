// Every backward op against central differences of its forward op, through the f64 path.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "core/ops/op.h"
#include "tests/conformance/workspace.h"

namespace zl::test {
namespace {

constexpr DType kType = DType::f64;

class Gradient : public testing::Test {
 protected:
  Gradient() : w(test_seed()), harness_(std::move(make_harnesses().back())) {
    RecordProperty("seed", std::to_string(test_seed()));
  }

  void run(const Op& op) { run_on(*harness_, op); }
  TensorView normal(const Shape& shape) { return w.normal(kType, shape); }
  TensorView zeros(const Shape& shape) { return w.zeros(kType, shape); }
  static double dot(const TensorView& a, const TensorView& b) {
    double sum = 0;
    for (std::int64_t i = 0; i < a.count(); ++i) sum += get(a, i) * get(b, i);
    return sum;
  }

  // d loss / d input at up to 40 random elements, compared with `gradient`.
  template <class Loss>
  void check(const char* what, Loss&& loss, const TensorView& input, const TensorView& gradient) {
    ASSERT_EQ(input.count(), gradient.count());
    constexpr double kStep = 1e-5;
    std::uniform_int_distribution<std::int64_t> pick(0, input.count() - 1);
    for (int trial = 0; trial < 40; ++trial) {
      const std::int64_t i = pick(w.random());
      const double x = get(input, i);
      set(input, i, x + kStep);
      const double above = loss();
      set(input, i, x - kStep);
      const double below = loss();
      set(input, i, x);
      const double expected = (above - below) / (2 * kStep);
      EXPECT_NEAR(get(gradient, i), expected, 2e-7 * (1 + std::abs(expected)))
          << what << ", element " << i << ", ZL_TEST_SEED=" << test_seed();
    }
  }

  Workspace w;

 private:
  std::unique_ptr<Harness> harness_;
};

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
  forward.out = zeros({18, 5});
  forward.dropout = w.dropout(0.3f);
  const TensorView dout = normal({18, 5});
  const auto loss = [&] {
    run(forward);
    return dot(forward.out, dout);
  };
  const TensorView dwte = zeros({7, 5}), dwpe = zeros({8, 5});
  run(EmbeddingBackward{forward.tokens, dout, dwte, dwpe, forward.sequence, forward.dropout});
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

TEST_F(Gradient, Rope) {
  const RopeScaling llama31{8, 0.2, 0.8, 4};  // blends the first frequency
  const AttentionShape shape{2, 7, 4, 2, 6};
  const TensorView x = normal({shape.rows(), shape.qkv_width()}), dy = normal(x.shape);
  const auto loss = [&] {
    const TensorView y = w.copy(x);
    run(Rope{y, shape, 10000.0, false, llama31});
    return dot(y, dy);
  };
  const TensorView dx = w.copy(dy);
  run(Rope{dx, shape, 10000.0, true, llama31});
  check("dx", loss, x, dx);
}

struct AttentionForm {
  const char* name;
  AttentionShape shape;
  float dropout;
  AttentionMask mask = {};
  bool lengths = false;
};

void PrintTo(const AttentionForm& form, std::ostream* out) { *out << form.name; }

class AttentionGradient : public Gradient, public testing::WithParamInterface<AttentionForm> {};

TEST_P(AttentionGradient, Qkv) {
  AttentionForward forward;
  forward.shape = GetParam().shape;
  const AttentionShape& s = forward.shape;
  const auto make_views = [&](auto&& make) -> QkvViews {
    if (s.keys == 0) return packed_qkv(make(Shape{s.rows(), s.qkv_width()}), s);
    return {{make(Shape{s.rows(), s.out_width()}), 0, s.out_width()},
            {make(Shape{s.key_rows(), s.kv_width()}), 0, s.kv_width()},
            {make(Shape{s.key_rows(), s.kv_width()}), 0, s.kv_width()}};
  };
  forward.qkv = make_views([&](const Shape& shape) { return normal(shape); });
  forward.out = zeros({s.rows(), s.out_width()});
  forward.lse = zeros({s.batch, s.heads, s.sequence});
  forward.scale = 1.0 / std::sqrt(static_cast<double>(s.head_size));
  forward.dropout = w.dropout(GetParam().dropout);
  forward.mask = GetParam().mask;
  if (GetParam().lengths) {
    forward.mask =
        AttentionMask::padded(w.integers({s.batch}, 1, static_cast<std::int32_t>(s.key_count())));
  }
  const TensorView dout = normal(forward.out.shape);
  const auto loss = [&] {
    run(forward);
    return dot(forward.out, dout);
  };
  loss();
  const QkvViews dqkv = make_views([&](const Shape& shape) { return zeros(shape); });
  const TensorView delta = zeros(forward.lse.shape);
  run(AttentionBackward{dout, forward.out, forward.qkv, forward.lse, dqkv, delta, s, forward.scale,
                        forward.dropout, forward.mask});
  check("dq", loss, forward.qkv.q.matrix, dqkv.q.matrix);
  check("dk", loss, forward.qkv.k.matrix, dqkv.k.matrix);
  check("dv", loss, forward.qkv.v.matrix, dqkv.v.matrix);
}

INSTANTIATE_TEST_SUITE_P(
    Forms, AttentionGradient,
    testing::Values(AttentionForm{"plain", {2, 9, 3, 3, 4}, 0.0f},
                    AttentionForm{"grouped", {1, 11, 6, 2, 4}, 0.0f},
                    AttentionForm{"grouped_dropout", {2, 9, 4, 1, 8}, 0.3f},
                    AttentionForm{"long_dropout", {1, 70, 2, 2, 4}, 0.2f},
                    AttentionForm{"cached", {2, 5, 4, 2, 4, 75, 66}, 0.2f},
                    AttentionForm{"full", {2, 9, 4, 2, 4, 70}, 0.0f, AttentionMask::full()},
                    AttentionForm{
                        "window", {2, 70, 2, 1, 4, 75, 3}, 0.2f, AttentionMask::sliding(5)},
                    AttentionForm{"lengths", {3, 9, 4, 2, 4}, 0.1f, {}, true}),
    [](const auto& p) { return p.param.name; });

class ActivationGradient : public Gradient, public testing::WithParamInterface<ActivationKind> {};

TEST_P(ActivationGradient, Input) {
  const std::int64_t factor = GetParam() == ActivationKind::swiglu ? 2 : 1;
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
    default:
      return "swiglu";
  }
}

INSTANTIATE_TEST_SUITE_P(Kinds, ActivationGradient,
                         testing::Values(ActivationKind::gelu_tanh, ActivationKind::gelu_erf,
                                         ActivationKind::swiglu),
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
