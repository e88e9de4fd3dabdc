// Conformance cases of matrix products, activations and the loss.
#include "core/ops/op.h"
#include "tests/conformance/cases.h"

namespace zl::test {
namespace {

Op make_gemm(Workspace& w, DType dtype, DType out, bool accumulate, bool padded = false) {
  Gemm op;
  op.padded = padded;
  op.trans_a = w.coin();
  op.trans_b = w.coin();
  op.accumulate = accumulate;
  const std::int64_t m = w.pick({1, 2, 3, 16, 17, 63, 65, 130});
  const std::int64_t n = w.pick({1, 3, 16, 17, 48, 65, 96, 129});
  const std::int64_t k = w.pick({1, 2, 15, 16, 33, 64, 65, 200});
  const auto padding = [&] { return padded ? w.pick({0, 1, 7, 64}) : 0; };
  op.a = w.normal(dtype, op.trans_a ? Shape{k, m + padding()} : Shape{m, k + padding()});
  op.b = w.normal(dtype, op.trans_b ? Shape{n, k} : Shape{k, n});
  op.c = w.normal(out, {m, n + padding()});
  if (!padded && w.coin()) op.bias = w.normal(dtype, {n});
  return op;
}

TensorView tokens(Workspace& w, std::int64_t rows, std::int64_t vocab) {
  return w.integers({rows}, -1, static_cast<std::int32_t>(vocab - 1));
}

CrossEntropy make_cross_entropy(Workspace& w, DType dtype, bool gradient) {
  CrossEntropy op;
  const std::int64_t rows = w.pick({1, 3, 17, 40}), vocab = w.pick({1, 3, 65, 257, 1000});
  op.logits = w.normal(dtype, {rows, vocab + w.pick({0, 1, 7, 64})}, 3.0);
  op.targets = tokens(w, rows, vocab);
  op.losses = w.zeros(wide(dtype), {rows});
  op.vocab = vocab;
  op.grad_scale = w.uniform(0.1f, 2.0f);
  op.write_gradient = gradient;
  return op;
}

// Statistics of `ranks` ranks, of which the op's has the columns from the `rank`-th part on.
Op make_cut_cross_entropy(Workspace& w, DType dtype, bool gradient) {
  CrossEntropy op = make_cross_entropy(w, dtype, gradient);
  const std::int64_t rows = op.logits.rows(), ranks = w.pick({1, 2, 5});
  op.first_token = op.vocab * w.pick({0, 1, 3});
  op.targets = tokens(w, rows, op.first_token + 2 * op.vocab);
  op.statistics = w.positive(wide(dtype), {ranks, rows, LogitStatistics::kValues}, 4.0);
  for (std::int64_t row = 0; row < rows; ++row) {  // no smaller than the row's own, as they are
    set(op.statistics, LogitStatistics::kValues * row, 15.0);
    set(op.statistics, LogitStatistics::kValues * row + 1, 1.5);
  }
  return op;
}

Op make_logit_statistics(Workspace& w, DType dtype) {
  const CrossEntropy op = make_cross_entropy(w, dtype, false);
  const std::int64_t first = op.vocab * w.pick({0, 1, 3}), rows = op.logits.rows();
  return LogitStatistics{op.logits, tokens(w, rows, first + 2 * op.vocab),
                         w.zeros(wide(dtype), {rows, LogitStatistics::kValues}), op.vocab, first};
}

Shape activation_shape(Workspace& w) { return {w.pick({1, 3, 17}), w.pick({1, 3, 17, 65, 1030})}; }

Op make_activation(Workspace& w, DType dtype, ActivationKind kind) {
  const Shape y = activation_shape(w);
  return ActivationForward{kind, w.normal(dtype, {y[0], y[1] * (is_gated(kind) ? 2 : 1)}, 3.0),
                           w.zeros(dtype, y)};
}

enum class Alias { none, dx_is_x, dx_is_dy };

Op make_activation_backward(Workspace& w, DType dtype, ActivationKind kind, Alias alias) {
  const Shape y = activation_shape(w);
  const Shape x{y[0], y[1] * (is_gated(kind) ? 2 : 1)};
  ActivationBackward op{kind, w.normal(dtype, x, 3.0), w.normal(dtype, y), w.zeros(dtype, x)};
  if (alias == Alias::dx_is_x) op.dx = op.x;
  if (alias == Alias::dx_is_dy) op.dx = op.dy;
  return op;
}

}  // namespace

std::vector<Case> cases_of(Tag<Gemm>) {
  const std::vector<DType> halves = {DType::bf16, DType::f16};
  const auto same = [](bool accumulate) {
    return [=](Workspace& w, DType t) { return make_gemm(w, t, t, accumulate); };
  };
  const auto widened = [](bool accumulate) {
    return [=](Workspace& w, DType t) { return make_gemm(w, t, DType::f32, accumulate); };
  };
  const auto padded = [](bool accumulate) {
    return [=](Workspace& w, DType t) { return make_gemm(w, t, t, accumulate, true); };
  };
  return {{"gemm", kFloats, same(false), 2},
          {"gemm_accumulate", kFloats, same(true), 2},
          {"gemm_half_to_f32", halves, widened(false), 2},
          {"gemm_half_to_f32_accumulate", halves, widened(true), 2},
          {"gemm_padded_rows", kFloats, padded(false), 2},
          {"gemm_padded_rows_accumulate", kFloats, padded(true), 2}};
}

std::vector<Case> cases_of(Tag<BiasBackward>) {
  const auto make = [](bool accumulate) {
    return [=](Workspace& w, DType dtype) -> Op {
      const Shape shape{w.pick({1, 3, 17, 200}), w.pick({1, 3, 17, 65, 200, 1030})};
      return BiasBackward{w.normal(dtype, shape), w.normal(wide(dtype), {shape[1]}), accumulate};
    };
  };
  return {{"bias_backward", kFloats, make(false)},
          {"bias_backward_accumulate", kFloats, make(true)}};
}

std::vector<Case> cases_of(Tag<ActivationForward>) {
  const auto make = [](ActivationKind kind) {
    return [=](Workspace& w, DType dtype) { return make_activation(w, dtype, kind); };
  };
  return {{"gelu_tanh", kFloats, make(ActivationKind::gelu_tanh)},
          {"gelu_erf", kFloats, make(ActivationKind::gelu_erf)},
          {"swiglu", kFloats, make(ActivationKind::swiglu)},
          {"geglu_tanh", kFloats, make(ActivationKind::geglu_tanh)},
          {"tanh", kFloats, make(ActivationKind::tanh)}};
}

std::vector<Case> cases_of(Tag<ActivationBackward>) {
  const auto make = [](ActivationKind kind, Alias alias) {
    return
        [=](Workspace& w, DType dtype) { return make_activation_backward(w, dtype, kind, alias); };
  };
  using enum ActivationKind;
  return {{"gelu_tanh_backward", kFloats, make(gelu_tanh, Alias::none)},
          {"gelu_erf_backward", kFloats, make(gelu_erf, Alias::none)},
          {"swiglu_backward", kFloats, make(swiglu, Alias::none)},
          {"gelu_tanh_backward_in_x", kFloats, make(gelu_tanh, Alias::dx_is_x)},
          {"gelu_erf_backward_in_dy", kFloats, make(gelu_erf, Alias::dx_is_dy)},
          {"swiglu_backward_in_x", kFloats, make(swiglu, Alias::dx_is_x)},
          {"geglu_tanh_backward", kFloats, make(geglu_tanh, Alias::none)},
          {"geglu_tanh_backward_in_x", kFloats, make(geglu_tanh, Alias::dx_is_x)},
          {"tanh_backward", kFloats, make(tanh, Alias::none)},
          {"tanh_backward_in_dy", kFloats, make(tanh, Alias::dx_is_dy)}};
}

std::vector<Case> cases_of(Tag<CrossEntropy>) {
  const auto make = [](bool gradient) {
    return [=](Workspace& w, DType dtype) -> Op { return make_cross_entropy(w, dtype, gradient); };
  };
  const auto cut = [](Workspace& w, DType dtype) -> Op {
    return make_cut_cross_entropy(w, dtype, true);
  };
  return {{"cross_entropy", kFloats, make(true), 1, 1},
          {"cross_entropy_loss_only", kFloats, make(false), 1, 1},
          {"cross_entropy_cut", kFloats, cut, 1, 1}};
}

std::vector<Case> cases_of(Tag<LogitStatistics>) {
  return {{"logit_statistics", kFloats, make_logit_statistics, 1, 1}};
}

std::vector<Case> cases_of(Tag<Sum>) {
  const auto make = [](bool accumulate, DType out) {
    return [=](Workspace& w, DType dtype) -> Op {
      const std::int64_t count = w.pick({1, 3, 17, 1000, 9001});
      return Sum{w.positive(dtype, {count}), w.positive(out, {1}), w.uniform(-2, 2), accumulate};
    };
  };
  const std::vector<DType> types = {DType::f64, DType::f32};
  return {{"sum_to_f32", types, make(false, DType::f32)},
          {"sum_to_f64", types, make(false, DType::f64)},
          {"sum_accumulate", types, make(true, DType::f64)}};
}

}  // namespace zl::test
