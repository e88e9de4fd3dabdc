// 1-bit LAMB (Li et al. 2021) after its warm-up: gradients are guessed from momenta, and
// the trust ratio is that of the warm-up times a factor that follows the second moment.
#pragma once

#include "core/ops/checks.h"

namespace zl {

// Of one parameter, with d = sqrt(v) + epsilon:
//   g = (m - beta1 * m_last) / (1 - beta1);  v_fresh = beta2 * v_fresh + (1 - beta2) * g^2
//   direction = m / d;  update = direction + weight_decay * param
//   ratio = d / (sqrt(v_fresh) + epsilon);  m_last = m
// All f32[n].
struct OnebitLambUpdate {
  static constexpr const char* kName = "onebit_lamb_update";
  TensorView param, m, m_last, v, v_fresh, direction, update, ratio;
  float beta1 = 0, beta2 = 0, epsilon = 0, weight_decay = 0;

  void validate() const {
    visit([&](const TensorView& view, Access) {
      require(view.dtype == DType::f32 && view.count() == param.count(), kName,
              "all tensors are f32 of one count");
    });
  }
  Cost cost() const {
    return streaming_cost(*this, 16.0 * static_cast<double>(param.count()), 1, param.count());
  }
  template <class F>
  void visit(F&& f) const {
    f(param, Access::read), f(m, Access::read), f(m_last, Access::read_write);
    f(v, Access::read), f(v_fresh, Access::read_write), f(direction, Access::write);
    f(update, Access::write), f(ratio, Access::write);
  }
};

// The trust ratio of one parameter: with s = |direction| / |update|, at most 1 (1 where |update| is
// 0), factor = largest_ratio * s + 1 - s, held within [factor_min, factor_max] and within
// `threshold` of the last factor; trust = frozen * factor, last = factor.
// largest_ratio, frozen, last, trust: f32[1]; squares: f64[2], SquaredSum's form.
struct OnebitLambTrust {
  static constexpr const char* kName = "onebit_lamb_trust";
  TensorView largest_ratio, direction_square, update_square, frozen, last, trust;
  float factor_min = 0, factor_max = 0, threshold = 0;

  void validate() const {
    require(direction_square.count() == 2 && update_square.count() == 2, kName,
            "squared norms are two f64 each");
    for (const TensorView& one : {largest_ratio, frozen, last, trust}) {
      require(one.count() == 1 && one.dtype == DType::f32, kName, "the others are one f32 each");
    }
  }
  Cost cost() const { return streaming_cost(*this, 10, 1, 1); }
  template <class F>
  void visit(F&& f) const {
    f(largest_ratio, Access::read), f(direction_square, Access::read);
    f(update_square, Access::read), f(frozen, Access::read), f(last, Access::read_write);
    f(trust, Access::write);
  }
};

// param -= lr * scale * update; copy = param. param, update: f32[n]; scale: f32[1]; copy: absent,
// or the compute type.
struct ScaledStep {
  static constexpr const char* kName = "scaled_step";
  TensorView param, update, scale, copy;
  float lr = 0;

  void validate() const {
    require(update.count() == param.count() && scale.count() == 1, kName,
            "param and update have one count, scale is one element");
    require(param.dtype == DType::f32 && update.dtype == DType::f32 && scale.dtype == DType::f32,
            kName, "param, update and scale are f32");
  }
  Cost cost() const {
    return streaming_cost(*this, 2.0 * static_cast<double>(param.count()), 1, param.count());
  }
  template <class F>
  void visit(F&& f) const {
    f(param, Access::read_write), f(update, Access::read), f(scale, Access::read);
    f(copy, Access::write);
  }
};

}  // namespace zl
