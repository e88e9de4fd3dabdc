// Attention's operands for benches: random queries, keys, values and gradients of the output.
// Ownership: owns them; its ops refer to it. Threads: used by one thread.
#pragma once

#include <cmath>

#include "backends/cpu/ops/ops.h"
#include "core/ops/attention.h"
#include "core/ops/elementwise.h"
#include "tests/bench/paired.h"

namespace zl::bench {

struct AttentionProblem {
  AttentionShape shape;
  Storage qkv, out, lse, dout, dqkv, delta;

  AttentionProblem(const AttentionShape& s, DType type)
      : shape(s),
        qkv(type, Shape{s.rows(), s.qkv_width()}),
        out(type, Shape{s.rows(), s.out_width()}),
        lse(DType::f32, Shape{s.rows() * s.heads}),
        dout(type, out.view.shape),
        dqkv(type, qkv.view.shape),
        delta(DType::f32, lse.view.shape) {
    cpu::execute(RandomNormal{qkv.view, 1.0, {1, 0, 0}, 0}, {1});
    cpu::execute(RandomNormal{dout.view, 1.0, {2, 0, 0}, 0}, {1});
  }
  double scale() const { return 1.0 / std::sqrt(static_cast<double>(shape.head_size)); }
  AttentionForward forward(const AttentionMask& mask = {}) const {
    return {packed_qkv(qkv.view, shape), out.view, lse.view, shape, scale(), {}, mask};
  }
  AttentionBackward backward(const AttentionMask& mask = {}) const {
    return {dout.view,
            out.view,
            packed_qkv(qkv.view, shape),
            lse.view,
            packed_qkv(dqkv.view, shape),
            delta.view,
            shape,
            scale(),
            {},
            mask};
  }
};

}  // namespace zl::bench
