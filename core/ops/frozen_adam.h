// Adam in halves, for optimizers that exchange momenta between them: the first moment, and the step
// of a second moment that no longer changes. Element-wise with fused multiply-adds, as AdamStep.
#pragma once

#include "core/ops/checks.h"

namespace zl {

// m = fma(1 - beta1, grad_scale * grad, beta1 * m). m: f32[n]; grad: any floating type; factor: as
// AdamStep's.
struct MomentumStep {
  static constexpr const char* kName = "momentum_step";
  TensorView m, grad;
  float beta1 = 0, grad_scale = 1;
  TensorView factor = {};

  void validate() const {
    require_factor(factor, kName);
    require(m.count() == grad.count(), kName, "m and grad have one count");
    require(m.dtype == DType::f32, kName, "m is f32");
  }
  Cost cost() const {
    return streaming_cost(*this, 4.0 * static_cast<double>(m.count()), 1, m.count());
  }
  template <class F>
  void visit(F&& f) const {
    f(m, Access::read_write), f(grad, Access::read), f(factor, Access::read);
  }
};

// The end of a decoupled AdamStep with moments that are given:
//   d = fma(sqrt(v), 1 / sqrt(bias2), epsilon);  p = fma(p, -lr * weight_decay, p)
//   p = fma(m / d, -lr / bias1, p);  copy = p in the copy's type
// param, m, v: f32[n]; copy: absent, or the compute type.
struct FrozenAdamStep {
  static constexpr const char* kName = "frozen_adam_step";
  TensorView param, m, v, copy;
  float lr = 0, epsilon = 0, weight_decay = 0, bias1 = 1, bias2 = 1;

  void validate() const {
    require(m.count() == param.count() && v.count() == param.count() &&
                (copy.empty() || copy.count() == param.count()),
            kName, "param, m, v and copy have one count");
    require(param.dtype == DType::f32 && m.dtype == DType::f32 && v.dtype == DType::f32, kName,
            "param, m and v are f32");
  }
  Cost cost() const {
    return streaming_cost(*this, 8.0 * static_cast<double>(param.count()), 1, param.count());
  }
  template <class F>
  void visit(F&& f) const {
    f(param, Access::read_write), f(m, Access::read), f(v, Access::read), f(copy, Access::write);
  }
};

// 0/1 Adam (Lu et al. 2022), a step that is not shared: the rank moves on its own, and `moved` says
// how far it is from the parameters that all ranks agree on.
//   w = param + moved;  moved -= lr * (m / (sqrt(v) + epsilon) + weight_decay * w)
//   copy = param + moved
// param, m, v, moved: f32[n]; copy: the working weights.
struct LocalAdamStep {
  static constexpr const char* kName = "local_adam_step";
  TensorView param, m, v, moved, copy;
  float lr = 0, epsilon = 0, weight_decay = 0;

  void validate() const {
    require(m.count() == param.count() && v.count() == param.count() &&
                moved.count() == param.count() && copy.count() == param.count(),
            kName, "param, m, v, moved and copy have one count");
    require(param.dtype == DType::f32 && m.dtype == DType::f32 && v.dtype == DType::f32 &&
                moved.dtype == DType::f32,
            kName, "param, m, v and moved are f32");
  }
  Cost cost() const {
    return streaming_cost(*this, 9.0 * static_cast<double>(param.count()), 1, param.count());
  }
  template <class F>
  void visit(F&& f) const {
    f(param, Access::read), f(m, Access::read), f(v, Access::read), f(moved, Access::read_write);
    f(copy, Access::write);
  }
};

// x *= sqrt(v) + epsilon: a way in parameter space as one in momentum space. x, v: f32[n].
struct DenominatorScale {
  static constexpr const char* kName = "denominator_scale";
  TensorView x, v;
  float epsilon = 0;

  void validate() const {
    require(x.count() == v.count() && x.dtype == DType::f32 && v.dtype == DType::f32, kName,
            "x and v are f32 of one count");
  }
  Cost cost() const {
    return streaming_cost(*this, 3.0 * static_cast<double>(x.count()), 1, x.count());
  }
  template <class F>
  void visit(F&& f) const {
    f(x, Access::read_write), f(v, Access::read);
  }
};

// 0/1 Adam, when the ranks have agreed on `moved` (in momentum space):
//   m = -moved / lr_sum;  param += moved / (sqrt(v) + epsilon);  moved = 0;  copy = param
// param, m, v, moved: f32[n]; copy: the working weights; lr_sum: of the local steps, not 0.
struct SharedAdamStep {
  static constexpr const char* kName = "shared_adam_step";
  TensorView param, m, v, moved, copy;
  float epsilon = 0, lr_sum = 1;

  void validate() const {
    require(m.count() == param.count() && v.count() == param.count() &&
                moved.count() == param.count() && copy.count() == param.count(),
            kName, "param, m, v, moved and copy have one count");
    require(param.dtype == DType::f32 && m.dtype == DType::f32 && v.dtype == DType::f32 &&
                moved.dtype == DType::f32 && lr_sum != 0,
            kName, "param, m, v and moved are f32, lr_sum is not 0");
  }
  Cost cost() const {
    return streaming_cost(*this, 5.0 * static_cast<double>(param.count()), 1, param.count());
  }
  template <class F>
  void visit(F&& f) const {
    f(param, Access::read_write), f(m, Access::write), f(v, Access::read);
    f(moved, Access::read_write), f(copy, Access::write);
  }
};

}  // namespace zl
