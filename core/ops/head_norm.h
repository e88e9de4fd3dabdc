// RMSNorm of query and key heads (Henry et al. 2020; as Qwen3 has it), in the packed matrix.
#pragma once

#include "core/ops/attention.h"

namespace zl {

// Elements of the heads that are normalised: queries, then keys.
inline std::int64_t normed_width(const AttentionShape& shape) {
  return shape.out_width() + shape.kv_width();
}

// Each query and key head of qkv[n, (H + 2 KV) D], over its D elements, in place:
//   x = the head;  head = x * rstd * (weight_offset + weight),  rstd = 1 / sqrt(mean x^2 + epsilon)
// x[n, (H + KV) D], of qkv's type, keeps the heads as they were, rstd[n, H + KV] f32 (f64);
// q_weight[D] is of all query heads, k_weight[D] of all key heads.
struct HeadNormForward {
  static constexpr const char* kName = "head_norm_forward";
  TensorView qkv, x, q_weight, k_weight, rstd;
  AttentionShape shape;
  double epsilon = 1e-6;
  double weight_offset = 0;

  void validate() const {
    require(qkv.columns() == shape.qkv_width() && qkv.rows() == shape.rows(), kName,
            "qkv is [batch*sequence, (heads + 2 kv_heads) * head_size]");
    require(x.columns() == normed_width(shape) && x.rows() == shape.rows(), kName,
            "x is [batch*sequence, (heads + kv_heads) * head_size]");
    require(q_weight.count() == shape.head_size && k_weight.count() == shape.head_size, kName,
            "weights have one element per element of a head");
    require(rstd.count() == shape.rows() * (shape.heads + shape.kv_heads), kName,
            "rstd is [batch*sequence, heads + kv_heads]");
  }
  Cost cost() const {
    return {6.0 * static_cast<double>(x.count()),
            x.bytes() + q_weight.bytes() + k_weight.bytes(),
            2 * x.bytes() + rstd.bytes(),
            shape.rows(),
            x.columns(),
            1};
  }
  template <class F>
  void visit(F&& f) const {
    f(qkv, Access::read_write), f(x, Access::write);
    f(q_weight, Access::read), f(k_weight, Access::read), f(rstd, Access::write);
  }
};

// dqkv holds the gradients of the normed heads and gets those of x, in place:
//   dx = rstd (g - xhat avg(g xhat)),  xhat = x rstd,  g = d (weight_offset + weight)
// dq_weight, dk_weight[D] (+)= the sums of d xhat over rows and heads, in the gradient type (f32;
// f64 for f64).
struct HeadNormBackward {
  static constexpr const char* kName = "head_norm_backward";
  TensorView dqkv, x, q_weight, k_weight, rstd, dq_weight, dk_weight;
  AttentionShape shape;
  double weight_offset = 0;
  bool accumulate = false;  // both weights' gradients

  void validate() const {
    require(dqkv.columns() == shape.qkv_width() && dqkv.rows() == shape.rows(), kName,
            "dqkv is [batch*sequence, (heads + 2 kv_heads) * head_size]");
    require(x.columns() == normed_width(shape) && x.rows() == shape.rows(), kName,
            "x is [batch*sequence, (heads + kv_heads) * head_size]");
    require(dq_weight.count() == shape.head_size && dk_weight.count() == shape.head_size &&
                dq_weight.dtype == dk_weight.dtype,
            kName, "gradients of weights have one element per element of a head, of one type");
  }
  Cost cost() const {
    const std::int64_t weights = dq_weight.bytes() + dk_weight.bytes();
    return {12.0 * static_cast<double>(x.count()),
            2 * x.bytes() + rstd.bytes() + q_weight.bytes() + k_weight.bytes() +
                (accumulate ? weights : 0),
            x.bytes() + weights,
            shape.rows(),
            x.columns(),
            1};
  }
  template <class F>
  void visit(F&& f) const {
    const Access sums = accumulate ? Access::read_write : Access::write;
    f(dqkv, Access::read_write), f(x, Access::read), f(q_weight, Access::read);
    f(k_weight, Access::read), f(rstd, Access::read), f(dq_weight, sums), f(dk_weight, sums);
  }
};

}  // namespace zl
