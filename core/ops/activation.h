// MLP activations.
#pragma once

#include "core/ops/checks.h"
#include "core/ops/kinds.h"

namespace zl {

// gelu_tanh, gelu_erf: y[n,F] = gelu(x[n,F]). tanh: y = tanh(x), as what pools an encoder's rows.
// swiglu, geglu_tanh (Shazeer 2020): x[n,2F] holds gate then up; y[n,F] = silu(gate) * up, or
// gelu_tanh(gate) * up.
struct ActivationForward {
  static constexpr const char* kName = "activation_forward";
  ActivationKind kind = ActivationKind::gelu_tanh;
  TensorView x, y;

  void validate() const {
    require(x.rows() == y.rows() && x.columns() == y.columns() * (is_gated(kind) ? 2 : 1), kName,
            "x is y's shape, twice as wide where it holds a gate");
  }
  Cost cost() const {
    return streaming_cost(*this, 12.0 * static_cast<double>(y.count()), y.rows(), y.columns());
  }
  template <class F>
  void visit(F&& f) const {
    f(x, Access::read), f(y, Access::write);
  }
};

// dx from dy and the forward's x. dx may alias x; where there is no gate it may alias
// dy.
struct ActivationBackward {
  static constexpr const char* kName = "activation_backward";
  ActivationKind kind = ActivationKind::gelu_tanh;
  TensorView x, dy, dx;

  void validate() const { require(x.count() == dx.count(), kName, "x and dx alike"); }
  Cost cost() const {
    return streaming_cost(*this, 20.0 * static_cast<double>(dy.count()), dy.rows(), dy.columns());
  }
  template <class F>
  void visit(F&& f) const {
    f(x, Access::read), f(dy, Access::read), f(dx, Access::write);
  }
};

}  // namespace zl
