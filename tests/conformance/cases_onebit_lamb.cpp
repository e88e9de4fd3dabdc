// Conformance cases of 1-bit LAMB.
#include "core/ops/onebit_lamb.h"
#include "tests/conformance/cases.h"

namespace zl::test {

std::vector<Case> cases_of(Tag<OnebitLambUpdate>) {
  const auto make = [](Workspace& w, DType) -> Op {
    const std::int64_t n = w.pick({1, 17, 1025, 33000});
    OnebitLambUpdate op;
    op.param = w.normal(DType::f32, {n});
    op.m = w.normal(DType::f32, {n});
    op.m_last = w.normal(DType::f32, {n});
    op.v = w.positive(DType::f32, {n});
    op.v_fresh = w.positive(DType::f32, {n});
    op.direction = w.zeros(DType::f32, {n});
    op.update = w.zeros(DType::f32, {n});
    op.ratio = w.zeros(DType::f32, {n});
    op.beta1 = 0.9f;
    op.beta2 = 0.95f;
    op.epsilon = 1e-2f;
    op.weight_decay = w.uniform(0.0f, 0.2f);
    return op;
  };
  return {{"onebit_lamb_update", {DType::f32}, make, 8}};  // 1 / (1 - beta1) magnifies rounding
}

std::vector<Case> cases_of(Tag<OnebitLambTrust>) {
  const auto make = [](double ratio, bool zero_update) {
    return [=](Workspace& w, DType) -> Op {
      const auto one = [&](double value) {
        const TensorView view = w.zeros(DType::f32, {1});
        set(view, 0, value);
        return view;
      };
      OnebitLambTrust op;
      op.largest_ratio = one(ratio * w.uniform(0.9f, 1.1f));
      op.direction_square = w.positive(DType::f64, {2}, 1.0);
      op.update_square = zero_update ? w.zeros(DType::f64, {2}) : w.positive(DType::f64, {2}, 2.0);
      op.frozen = one(w.uniform(0.1f, 3.0f));
      op.last = one(w.uniform(0.6f, 3.5f));
      op.trust = w.zeros(DType::f32, {1});
      op.factor_min = 0.5f;
      op.factor_max = 4.0f;
      op.threshold = w.uniform(0.1f, 3.0f);
      return op;
    };
  };
  return {{"onebit_lamb_trust", {DType::f32}, make(1.5, false)},
          {"onebit_lamb_trust_large", {DType::f32}, make(9, false)},
          {"onebit_lamb_trust_small", {DType::f32}, make(0.1, false)},
          {"onebit_lamb_trust_zero", {DType::f32}, make(2, true)}};
}

std::vector<Case> cases_of(Tag<ScaledStep>) {
  const auto make = [](bool with_copy) {
    return [=](Workspace& w, DType copy) -> Op {
      const std::int64_t n = w.pick({1, 17, 1025, 33000});
      return ScaledStep{w.normal(DType::f32, {n}), w.normal(DType::f32, {n}),
                        w.positive(DType::f32, {1}), with_copy ? w.zeros(copy, {n}) : TensorView{},
                        w.uniform(1e-3f, 1e-1f)};
    };
  };
  return {{"scaled_step", {DType::f32, DType::bf16, DType::f16}, make(true)},
          {"scaled_step_alone", {DType::f32}, make(false)}};
}

}  // namespace zl::test
