// Rotary positions and causal attention that never stores the sequence x sequence matrix.
#pragma once

#include "core/ops/checks.h"
#include "core/ops/dropout_spec.h"
#include "core/ops/rope_scaling.h"

namespace zl {

struct AttentionShape {
  std::int64_t batch = 0, sequence = 0, heads = 0, kv_heads = 0, head_size = 0;

  std::int64_t rows() const { return batch * sequence; }
  std::int64_t qkv_width() const { return (heads + 2 * kv_heads) * head_size; }
  std::int64_t out_width() const { return heads * head_size; }
  // Multiply-adds of one s x s x head_size product over the causal half (diagonal included), x 2.
  double product_flops() const {
    return static_cast<double>(batch * heads * head_size) *
           (static_cast<double>(sequence) * static_cast<double>(sequence + 1));
  }
};

// Rotates q and k of qkv[n, (H + 2 KV) D] in place by position (Su et al. 2021), in the half-split
// layout of Llama: pairs (j, j + D/2), angle position * scaling.apply(theta^(-2j/D)). inverse: the
// backward.
struct Rope {
  static constexpr const char* kName = "rope";
  TensorView qkv;
  AttentionShape shape;
  double theta = 10000.0;
  bool inverse = false;
  RopeScaling scaling;

  void validate() const {
    require(qkv.columns() == shape.qkv_width() && qkv.rows() == shape.rows(), kName,
            "qkv is [batch*sequence, (heads + 2 kv_heads) * head_size]");
    require(shape.head_size % 2 == 0, kName, "head_size is even");
  }
  Cost cost() const {
    const std::int64_t touched = qkv.rows() * (shape.heads + shape.kv_heads) * shape.head_size *
                                 static_cast<std::int64_t>(size_of(qkv.dtype));
    return {3.0 * static_cast<double>(touched / static_cast<std::int64_t>(size_of(qkv.dtype))),
            touched,
            touched,
            qkv.rows(),
            qkv.columns(),
            1};
  }
  template <class F>
  void visit(F&& f) const {
    f(qkv, Access::read_write);
  }
};

// out[n, H D] = softmax(scale q k^T, causal) v per head, tiled with the online softmax (Dao et al.
// 2022, FlashAttention, algorithm 1). qkv rows hold q heads, then k heads, then v heads; query head
// h reads kv head h / (H / KV). lse[batch, H, sequence] f32 (f64): log-sum-exp of each row. Dropout
// acts on the probabilities, element index ((b H + h) s + i) s + j from dropout.base.
struct AttentionForward {
  static constexpr const char* kName = "attention_forward";
  TensorView qkv, out, lse;
  AttentionShape shape;
  double scale = 1.0;
  DropoutSpec dropout;

  void validate() const {
    require(qkv.columns() == shape.qkv_width() && qkv.rows() == shape.rows(), kName,
            "qkv is [batch*sequence, (heads + 2 kv_heads) * head_size]");
    require(out.columns() == shape.out_width() && out.rows() == shape.rows(), kName,
            "out is [batch*sequence, heads * head_size]");
    require(lse.count() == shape.rows() * shape.heads, kName, "lse is [batch, heads, sequence]");
    require(shape.heads % shape.kv_heads == 0, kName, "kv_heads divides heads");
  }
  Cost cost() const {
    return {2.0 * shape.product_flops(), qkv.bytes(),    out.bytes() + lse.bytes(),
            shape.batch * shape.heads,   shape.sequence, shape.head_size};
  }
  template <class F>
  void visit(F&& f) const {
    f(qkv, Access::read), f(out, Access::write), f(lse, Access::write);
  }
};

// dqkv from dout; recomputes the probabilities from qkv and lse (FlashAttention, algorithm 4).
// delta[batch, H, sequence] f32 (f64): scratch, rowsum(dout * out). dqkv is overwritten.
struct AttentionBackward {
  static constexpr const char* kName = "attention_backward";
  TensorView dout, out, qkv, lse, dqkv, delta;
  AttentionShape shape;
  double scale = 1.0;
  DropoutSpec dropout;

  void validate() const {
    require(qkv.columns() == shape.qkv_width() && dqkv.count() == qkv.count(), kName,
            "qkv and dqkv are [batch*sequence, (heads + 2 kv_heads) * head_size]");
    require(dout.count() == out.count() && lse.count() == delta.count(), kName,
            "dout like out, delta like lse");
  }
  Cost cost() const {
    return {5.0 * shape.product_flops(),
            dout.bytes() + out.bytes() + qkv.bytes() + lse.bytes(),
            dqkv.bytes() + delta.bytes(),
            shape.batch * shape.heads,
            shape.sequence,
            shape.head_size};
  }
  template <class F>
  void visit(F&& f) const {
    f(dout, Access::read), f(out, Access::read), f(qkv, Access::read), f(lse, Access::read);
    f(dqkv, Access::write), f(delta, Access::write);
  }
};

}  // namespace zl
