// Conformance cases of element-wise ops, optimizer updates and exact reductions.
#include <cmath>

#include "core/ops/op.h"
#include "tests/conformance/cases.h"

namespace zl::test {
namespace {

// Around the block (1024) and thread (16384 elements) cuts, and small.
std::int64_t odd_count(Workspace& w) {
  return w.pick({1, 3, 17, 63, 65, 1000, 1023, 1025, 4099, 33000, 50001});
}

TensorView copy_or_none(Workspace& w, std::int64_t n) {
  const std::int64_t choice = w.pick({0, 1, 2, 3});
  if (choice == 0) return {};
  return w.zeros(choice == 1 ? DType::bf16 : choice == 2 ? DType::f16 : DType::f32, {n});
}

// Of an update's gradients: with some as the device has found it.
TensorView factor_or_none(Workspace& w) {
  return w.coin() ? w.positive(DType::f64, {1}) : TensorView{};
}

Op make_adam(Workspace& w, DType grad, bool decoupled) {
  const std::int64_t n = odd_count(w), step = w.pick({1, 2, 10, 1000});
  AdamStep op;
  op.param = w.normal(DType::f32, {n});
  op.grad = w.normal(grad, {n});
  op.m = w.normal(DType::f32, {n}, 0.1);
  op.v = w.positive(DType::f32, {n}, 0.01);
  op.copy = copy_or_none(w, n);
  op.lr = w.uniform(1e-4f, 1e-1f);
  op.beta1 = w.uniform(0.8f, 0.95f);
  op.beta2 = w.uniform(0.9f, 0.999f);
  op.epsilon = 1e-6f;
  op.weight_decay = w.uniform(0.0f, 0.2f);
  op.bias1 = static_cast<float>(1.0 - std::pow(op.beta1, step));
  op.bias2 = static_cast<float>(1.0 - std::pow(op.beta2, step));
  op.grad_scale = w.uniform(0.1f, 2.0f);
  op.factor = factor_or_none(w);
  op.decoupled = decoupled;
  return op;
}

struct SgdForm {
  bool momentum = false, nesterov = false, first = false;
};

Op make_sgd(Workspace& w, DType grad, SgdForm form) {
  const std::int64_t n = odd_count(w);
  SgdStep op;
  op.param = w.normal(DType::f32, {n});
  op.grad = w.normal(grad, {n});
  if (form.momentum) op.buf = w.normal(DType::f32, {n});
  op.copy = copy_or_none(w, n);
  op.lr = w.uniform(1e-3f, 1e-1f);
  op.momentum = form.momentum ? w.uniform(0.5f, 0.99f) : 0.0f;
  op.weight_decay = w.uniform(0.0f, 0.2f);
  op.grad_scale = w.uniform(0.1f, 2.0f);
  op.factor = factor_or_none(w);
  op.nesterov = form.nesterov;
  op.first = form.first;
  return op;
}

Op make_lamb_update(Workspace& w, DType grad) {
  const std::int64_t n = odd_count(w);
  LambUpdate op;
  op.param = w.normal(DType::f32, {n});
  op.grad = w.normal(grad, {n});
  op.m = w.normal(DType::f32, {n}, 0.1);
  op.v = w.positive(DType::f32, {n}, 0.01);
  op.update = w.zeros(DType::f32, {n});
  op.beta1 = 0.9f;
  op.beta2 = 0.95f;
  op.epsilon = 1e-6f;
  op.weight_decay = w.uniform(0.0f, 0.2f);
  op.bias1 = w.uniform(0.1f, 1.0f);
  op.bias2 = w.uniform(0.05f, 1.0f);
  op.grad_scale = w.uniform(0.1f, 2.0f);
  op.factor = factor_or_none(w);
  return op;
}

Op make_lamb_apply(Workspace& w, DType, bool zero_norm) {
  const std::int64_t n = odd_count(w);
  LambApply op;
  op.param = w.normal(DType::f32, {n});
  op.update = w.normal(DType::f32, {n});
  op.param_square = zero_norm ? w.zeros(DType::f64, {2}) : w.positive(DType::f64, {2}, 9.0);
  op.update_square = w.positive(DType::f64, {2}, 1.0);
  op.copy = copy_or_none(w, n);
  op.lr = w.uniform(1e-3f, 1e-1f);
  op.min_trust = 0.01f;
  op.max_trust = static_cast<float>(w.pick({1, 10}));
  if (w.coin()) {
    op.average = w.positive(DType::f32, {1});
    op.average_beta = 0.9f;
  }
  return op;
}

Op make_squared_sum(Workspace& w, DType dtype, bool accumulate) {
  const TensorView x = w.normal(dtype, {odd_count(w)}, std::exp2(w.uniform(-12, 6)));
  double largest = 0;
  for (std::int64_t i = 0; i < x.count(); ++i) largest = std::max(largest, std::abs(get(x, i)));
  const TensorView bound = w.zeros(DType::f32, {1});
  set(bound, 0, largest * 1.000001);
  // What is already in out must be sums of the same grid; 0 is on every grid.
  return SquaredSum{x, bound, w.zeros(DType::f64, {2}), x.count() + w.pick({0, 1, 100000}),
                    accumulate};
}

Op make_axpy(Workspace& w, DType from, DType to, bool accumulate) {
  const std::int64_t n = odd_count(w);
  return Axpy{w.normal(from, {n}), w.normal(to, {n}), w.uniform(-2, 2), accumulate,
              factor_or_none(w)};
}

}  // namespace

std::vector<Case> cases_of(Tag<Fill>) {
  const auto make = [](Workspace& w, DType dtype) -> Op {
    return Fill{w.zeros(dtype, {odd_count(w)}), dtype == DType::i32 ? 42.0 : w.uniform(-2, 2)};
  };
  return {{"fill", {DType::f64, DType::f32, DType::bf16, DType::f16, DType::i32}, make}};
}

std::vector<Case> cases_of(Tag<Axpy>) {
  std::vector<Case> cases;
  for (const DType to : kFloats) {
    for (const bool accumulate : {false, true}) {
      cases.push_back(
          {std::string("axpy_to_") + name_of(to) + (accumulate ? "_accumulate" : ""), kFloats,
           [=](Workspace& w, DType from) { return make_axpy(w, from, to, accumulate); }});
    }
  }
  cases.push_back({"axpy_in_place", kFloats, [](Workspace& w, DType dtype) -> Op {
                     const TensorView x = w.normal(dtype, {odd_count(w)});
                     return Axpy{x, x, w.uniform(-2, 2), false};
                   }});
  return cases;
}

std::vector<Case> cases_of(Tag<CopyColumns>) {
  const auto make = [](Workspace& w, DType dtype) -> Op {
    const std::int64_t rows = w.pick({1, 3, 70}), width = w.pick({1, 7, 64});
    const std::int64_t before = w.pick({0, 5, 8}), behind = w.pick({0, 8, 9});
    return CopyColumns{{w.normal(dtype, {rows, before + width + behind}), before, width},
                       {w.normal(dtype, {rows, behind + width + before}), behind, width}};
  };
  return {{"copy_columns", kFloats, make}};
}

std::vector<Case> cases_of(Tag<Dropout>) {
  const auto make = [](bool alias, bool none) {
    return [=](Workspace& w, DType dtype) -> Op {
      const TensorView x = w.normal(dtype, {odd_count(w)});
      return Dropout{x, alias ? x : w.zeros(dtype, x.shape),
                     none ? DropoutSpec{} : w.dropout(w.uniform(0.05f, 0.6f))};
    };
  };
  return {{"dropout", kFloats, make(false, false)},
          {"dropout_in_place", kFloats, make(true, false)},
          {"dropout_none", kFloats, make(false, true)}};
}

std::vector<Case> cases_of(Tag<RandomNormal>) {
  const auto make = [](bool columns) {
    return [=](Workspace& w, DType dtype) -> Op {
      const DropoutSpec random = w.dropout(0);
      RandomNormal op{w.zeros(dtype, {odd_count(w)}), w.uniform(0.01f, 2.0f), random.key,
                      random.base};
      if (!columns) return op;
      op.columns = w.pick({1, 7, 64});
      op.stride = op.columns * w.pick({1, 2, 5});
      op.first = w.pick({0, 3, 100});
      return op;
    };
  };
  return {{"random_normal", kFloats, make(false)}, {"random_normal_columns", kFloats, make(true)}};
}

std::vector<Case> cases_of(Tag<AbsMax>) {
  const auto make = [](bool accumulate, double poison) {
    return [=](Workspace& w, DType dtype) -> Op {
      const TensorView x = w.normal(dtype, {odd_count(w)});
      const auto last = static_cast<std::size_t>(x.count()) - 1;
      const auto where = std::uniform_int_distribution<std::size_t>(0, last)(w.random());
      if (poison != 0) set(x, static_cast<std::int64_t>(where), poison);
      return AbsMax{x, w.positive(DType::f32, {1}, 5.0), accumulate};
    };
  };
  return {{"abs_max", kFloats, make(false, 0)},
          {"abs_max_accumulate", kFloats, make(true, 0)},
          {"abs_max_infinity", kFloats, make(true, -HUGE_VAL)},
          {"abs_max_nan", kFloats, make(false, std::nan(""))}};
}

std::vector<Case> cases_of(Tag<SquaredSum>) {
  const auto make = [](bool accumulate) {
    return [=](Workspace& w, DType dtype) { return make_squared_sum(w, dtype, accumulate); };
  };
  // Exact: tolerance 0.
  return {{"squared_sum", kFloats, make(false), 0},
          {"squared_sum_accumulate", kFloats, make(true), 0},
          {"squared_sum_of_zeros", kFloats,
           [](Workspace& w, DType dtype) -> Op {
             return SquaredSum{w.zeros(dtype, {odd_count(w)}), w.zeros(DType::f32, {1}),
                               w.zeros(DType::f64, {2}), 1, false};
           },
           0}};
}

// Norms above and below the largest, of one gradient and of several.
std::vector<Case> cases_of(Tag<ClipFactor>) {
  const auto make = [](Workspace& w, DType dtype) -> Op {
    ClipFactor op;
    op.parts = w.positive(dtype, {2}, std::exp2(w.uniform(-6, 12)));
    op.sum = w.zeros(dtype, {1});
    op.factor = w.zeros(dtype, {1});
    op.gradients = static_cast<double>(w.pick({1, 2, 3, 8}));
    op.loss_scale = static_cast<double>(w.pick({1, 1024, 65536}));
    op.unscale = 1.0 / op.loss_scale;
    op.max_norm = w.uniform(0.01f, 2.0f) / op.loss_scale;
    return op;
  };
  return {{"clip_factor", {DType::f64}, make}};
}

// Types of the optimizer cases are those of the gradient.
std::vector<Case> cases_of(Tag<AdamStep>) {
  const auto make = [](bool decoupled) {
    return [=](Workspace& w, DType grad) { return make_adam(w, grad, decoupled); };
  };
  const auto stochastic = [](Workspace& w, DType grad) {
    auto op = std::get<AdamStep>(make_adam(w, grad, true));
    op.copy = w.zeros(DType::bf16, {op.param.count()});
    op.stochastic = true;
    op.key = {test_seed(), 1, 2};
    return Op(op);
  };
  return {{"adamw_step", kFloats, make(true)},
          {"adam_step", kFloats, make(false)},
          // Up to a whole unit of bf16 instead of half of one.
          {"adamw_stochastic", kFloats, stochastic, 2}};
}

std::vector<Case> cases_of(Tag<SgdStep>) {
  const auto make = [](SgdForm form) {
    return [=](Workspace& w, DType grad) { return make_sgd(w, grad, form); };
  };
  return {
      {"sgd_step", kFloats, make({})},
      {"sgd_momentum", kFloats, make({.momentum = true})},
      {"sgd_momentum_first", kFloats, make({.momentum = true, .first = true})},
      {"sgd_nesterov", kFloats, make({.momentum = true, .nesterov = true})},
      {"sgd_nesterov_first", kFloats, make({.momentum = true, .nesterov = true, .first = true})}};
}

std::vector<Case> cases_of(Tag<LambUpdate>) { return {{"lamb_update", kFloats, make_lamb_update}}; }

std::vector<Case> cases_of(Tag<LambApply>) {
  const auto make = [](bool zero_norm) {
    return [=](Workspace& w, DType dtype) { return make_lamb_apply(w, dtype, zero_norm); };
  };
  return {{"lamb_apply", {DType::f32}, make(false)},
          {"lamb_apply_zero_norm", {DType::f32}, make(true)}};
}

}  // namespace zl::test
