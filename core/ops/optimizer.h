// Optimizer updates, and the reductions behind clipping and overflow detection. All act on flat
// ranges (a whole parameter or one rank's chunk) and are element-wise or order-independent, so the
// result does not depend on how parameters are partitioned: the ground of stage equality.
#pragma once

#include "core/base/rng.h"
#include "core/ops/checks.h"

namespace zl {

// out[0] = max(|x|) (max with out[0] when accumulate); infinity when any element is inf or NaN.
// x: any floating type; out: f32.
struct AbsMax {
  static constexpr const char* kName = "abs_max";
  TensorView x, out;
  bool accumulate = false;

  void validate() const {
    require(out.count() == 1 && out.dtype == DType::f32, kName, "out is one f32");
  }
  Cost cost() const { return streaming_cost(*this, static_cast<double>(x.count()), 1, x.count()); }
  template <class F>
  void visit(F&& f) const {
    f(x, Access::read), f(out, accumulate ? Access::read_write : Access::write);
  }
};

// Order-independent sum of squares by pre-rounding (Demmel & Nguyen, "Fast Reproducible
// Floating-Point Summation", ARITH 2013), two levels. With M = bound[0]^2 rounded up to a power of
// two and n = total_count rounded up likewise, every x_i^2 (exact in f64) is split into a multiple
// of q1 = n M 2^-52, then a multiple of q2 = n q1 2^-52, and a remainder that is dropped; the sums
// of each part are exact in f64, so out[0] + out[1] is the same for every partition, order and rank
// count. x: any floating type (f64: squares rounded once); bound: f32[1], at least max |x| over all
// ranks and finite; out: f64[2]; out (+)= when accumulate. bound 0 gives 0.
struct SquaredSum {
  static constexpr const char* kName = "squared_sum";
  TensorView x, bound, out;
  std::int64_t total_count = 0;
  bool accumulate = false;

  void validate() const {
    require(out.count() == 2 && out.dtype == DType::f64, kName, "out is two f64");
    require(bound.count() == 1 && bound.dtype == DType::f32, kName, "bound is one f32");
    require(total_count > 0, kName, "total_count counts the elements of all ranks");
  }
  Cost cost() const {
    return streaming_cost(*this, 8.0 * static_cast<double>(x.count()), 1, x.count());
  }
  template <class F>
  void visit(F&& f) const {
    f(x, Access::read), f(bound, Access::read);
    f(out, accumulate ? Access::read_write : Access::write);
  }
};

// What gradients are multiplied by so that their norm is at most max_norm, from reduced parts as
// SquaredSum's, in f64: sum = parts[0] + parts[1]; norm = sqrt(sum / gradients) / loss_scale;
//   factor = unscale / max(1, (norm + 1e-6) / max_norm)
// parts: f64[2]; sum, factor: f64[1]; factor may lie in parts. A norm of NaN counts as small.
struct ClipFactor {
  static constexpr const char* kName = "clip_factor";
  TensorView parts, sum, factor;
  double gradients = 1;  // whose squares were added up: the norm is the root of their mean
  double loss_scale = 1, unscale = 1, max_norm = 1;

  void validate() const {
    require(parts.count() == 2 && parts.dtype == DType::f64, kName, "parts are two f64");
    require(sum.count() == 1 && sum.dtype == DType::f64, kName, "sum is one f64");
    require(factor.count() == 1 && factor.dtype == DType::f64, kName, "factor is one f64");
    require(max_norm > 0, kName, "max_norm is positive");
  }
  Cost cost() const { return streaming_cost(*this, 8, 1, 2); }
  template <class F>
  void visit(F&& f) const {
    f(parts, Access::read), f(sum, Access::write), f(factor, Access::write);
  }
};

// Adam (Kingma & Ba 2015) and AdamW (Loshchilov & Hutter 2019), arithmetic of DeepSpeed's csrc/adam
// with fused multiply-adds everywhere (vector body and tail alike):
//   g = grad_scale * grad; (L2) g = fma(weight_decay, p, g)
//   m = fma(1 - beta1, g, beta1 * m);  v = fma(1 - beta2, g * g, beta2 * v)
//   d = fma(sqrt(v), 1 / sqrt(bias2), epsilon);  (decoupled) p = fma(p, -lr * weight_decay, p)
//   p = fma(m / d, -lr / bias1, p);  copy = p in the copy's type
// bias1 = 1 - beta1^t and bias2 = 1 - beta2^t come from a double pow on the host (1 without
// correction). param, m, v: f32[n]; grad: any floating type; copy: absent, or the compute type.
// factor: absent, or f64[1], which as f32 takes the place of grad_scale; so in every update.
// stochastic: copy[i] (bf16) = round_stochastically(p[i], random_bits(key, base + i)).
struct AdamStep {
  static constexpr const char* kName = "adam_step";
  TensorView param, grad, m, v, copy;
  float lr = 0, beta1 = 0, beta2 = 0, epsilon = 0, weight_decay = 0;
  float bias1 = 1, bias2 = 1, grad_scale = 1;
  bool decoupled = true;
  bool stochastic = false;
  RngKey key = {};
  std::uint64_t base = 0;
  TensorView factor = {};

  void validate() const {
    require_factor(factor, kName);
    require(grad.count() == param.count() && m.count() == param.count() &&
                v.count() == param.count() && (copy.empty() || copy.count() == param.count()),
            kName, "param, grad, m, v and copy have one count");
    require(param.dtype == DType::f32 && m.dtype == DType::f32 && v.dtype == DType::f32, kName,
            "param, m and v are f32");
    require(!stochastic || (!copy.empty() && copy.dtype == DType::bf16), kName,
            "stochastic rounding is of a bf16 copy");
  }
  Cost cost() const {
    return streaming_cost(*this, 16.0 * static_cast<double>(param.count()), 1, param.count());
  }
  template <class F>
  void visit(F&& f) const {
    f(param, Access::read_write), f(grad, Access::read), f(m, Access::read_write);
    f(v, Access::read_write), f(copy, Access::write), f(factor, Access::read);
  }
};

// SGD as torch.optim.SGD: g = grad_scale * grad + weight_decay * p; buf = momentum * buf + g (buf =
// g on the first step); p -= lr * (nesterov ? g + momentum * buf : buf). buf is absent when
// momentum = 0.
struct SgdStep {
  static constexpr const char* kName = "sgd_step";
  TensorView param, grad, buf, copy;
  float lr = 0, momentum = 0, weight_decay = 0, grad_scale = 1;
  bool nesterov = false, first = false;
  TensorView factor = {};

  void validate() const {
    require_factor(factor, kName);
    require(grad.count() == param.count(), kName, "param and grad have one count");
    require((momentum == 0) == buf.empty(), kName, "buf is present when momentum is not 0");
  }
  Cost cost() const {
    return streaming_cost(*this, 6.0 * static_cast<double>(param.count()), 1, param.count());
  }
  template <class F>
  void visit(F&& f) const {
    f(param, Access::read_write), f(grad, Access::read);
    f(buf, first ? Access::write : Access::read_write), f(copy, Access::write);
    f(factor, Access::read);
  }
};

// LAMB (You et al. 2020), first half: m and v as Adam, update = (m/bias1)/(sqrt(v/bias2)+epsilon)
// + weight_decay * p into update f32[n].
struct LambUpdate {
  static constexpr const char* kName = "lamb_update";
  TensorView param, grad, m, v, update;
  float beta1 = 0, beta2 = 0, epsilon = 0, weight_decay = 0, bias1 = 1, bias2 = 1, grad_scale = 1;
  TensorView factor = {};

  void validate() const {
    require_factor(factor, kName);
    require(grad.count() == param.count() && update.count() == param.count(), kName,
            "param, grad and update have one count");
  }
  Cost cost() const {
    return streaming_cost(*this, 16.0 * static_cast<double>(param.count()), 1, param.count());
  }
  template <class F>
  void visit(F&& f) const {
    f(param, Access::read), f(grad, Access::read), f(m, Access::read_write);
    f(v, Access::read_write), f(update, Access::write), f(factor, Access::read);
  }
};

// LAMB, second half: trust = clamp(|p| / |u|, min_trust, max_trust), 1 when either norm is 0, with
// the squared norms param_square[0] + [1] and update_square[0] + [1] (f64[2] each, SquaredSum's
// form); p -= lr * trust * update. average (absent, or f32[1]): where trust is not 1, average =
// average_beta * average + (1 - average_beta) * trust.
struct LambApply {
  static constexpr const char* kName = "lamb_apply";
  TensorView param, update, param_square, update_square, copy;
  float lr = 0, min_trust = 0, max_trust = 0;
  TensorView average = {};
  float average_beta = 0;

  void validate() const {
    require(update.count() == param.count(), kName, "param and update have one count");
    require(param_square.count() == 2 && update_square.count() == 2, kName,
            "squared norms are two f64 each");
    require(average.empty() || (average.count() == 1 && average.dtype == DType::f32), kName,
            "average is one f32");
  }
  Cost cost() const {
    return streaming_cost(*this, 2.0 * static_cast<double>(param.count()), 1, param.count());
  }
  template <class F>
  void visit(F&& f) const {
    f(param, Access::read_write), f(update, Access::read), f(param_square, Access::read);
    f(update_square, Access::read), f(copy, Access::write), f(average, Access::read_write);
  }
};

}  // namespace zl
