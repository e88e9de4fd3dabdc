// LayerNorm (Ba et al. 2016) and RMSNorm (Zhang & Sennrich 2019), fused with the residual addition.
#pragma once

#include "core/ops/checks.h"
#include "core/ops/dropout_spec.h"
#include "core/ops/kinds.h"

namespace zl {

// sum = x + dropout(add)            (when add is present; else sum is absent and x is normalised)
// out = (sum - mean) * rstd * weight + bias          layer_norm
// out = sum * rstd * weight                          rms_norm (bias and mean absent)
// where `weight` is weight_offset + weight (Gemma keeps its weights less 1).
// x, add, sum, out: [n,C], one type; weight, bias: [C] of that type; mean, rstd: [n] f32 (f64).
// sum may alias x. What is normalised is the sum as stored (rounded to its type), so that
// recomputing from the stored sum gives the same bits.
struct NormForward {
  static constexpr const char* kName = "norm_forward";
  NormKind kind = NormKind::layer_norm;
  TensorView x, add, sum, weight, bias, out, mean, rstd;
  double epsilon = 1e-5;
  DropoutSpec dropout;
  double weight_offset = 0;

  void validate() const {
    require(x.count() == out.count() && x.columns() == out.columns(), kName, "x and out alike");
    require(add.empty() == sum.empty(), kName, "add and sum come together");
    require(weight.count() == x.columns(), kName, "weight has one element per column");
    require(rstd.count() == x.rows(), kName, "rstd has one element per row");
    require(kind == NormKind::rms_norm || mean.count() == x.rows(), kName,
            "LayerNorm keeps a mean");
  }
  Cost cost() const {
    return streaming_cost(*this, 8.0 * static_cast<double>(x.count()), x.rows(), x.columns());
  }
  template <class F>
  void visit(F&& f) const {
    f(x, Access::read), f(add, Access::read), f(sum, Access::write), f(weight, Access::read);
    f(bias, Access::read), f(out, Access::write), f(mean, Access::write), f(rstd, Access::write);
  }
};

// dx = dresidual + d(norm)/dx; dweight, dbias (+)= their sums over rows.
// x: what was normalised (`sum` of the forward). dresidual may be absent; it and dout may alias dx.
// dweight, dbias: gradient type (f32; f64 for f64); dbias absent for RMSNorm.
struct NormBackward {
  static constexpr const char* kName = "norm_backward";
  NormKind kind = NormKind::layer_norm;
  TensorView dout, x, weight, mean, rstd, dresidual, dx, dweight, dbias;
  bool accumulate = false;  // dweight and dbias
  double weight_offset = 0;

  void validate() const {
    require(dout.count() == x.count() && dx.count() == x.count(), kName, "dout, x and dx alike");
    require(dweight.count() == x.columns(), kName, "dweight has one element per column");
  }
  Cost cost() const {
    return streaming_cost(*this, 14.0 * static_cast<double>(x.count()), x.rows(), x.columns());
  }
  template <class F>
  void visit(F&& f) const {
    f(dout, Access::read), f(x, Access::read), f(weight, Access::read), f(mean, Access::read);
    f(rstd, Access::read), f(dresidual, Access::read), f(dx, Access::write);
    f(dweight, accumulate ? Access::read_write : Access::write);
    f(dbias, accumulate ? Access::read_write : Access::write);
  }
};

}  // namespace zl
