// The types of weights and gradients, and of what crosses the wire; masters are always fp32.
// Ownership: a value. Threads: immutable while a run uses it.
#pragma once

#include "core/base/dtype.h"

namespace zl {

struct PrecisionConfig {
  DType compute_dtype = DType::f32;     // f32 | bf16 | f16: weights and activations
  bool stochastic_rounding = false;     // of bf16 weights from their masters (Adam and AdamW)
  DType grad_accum_dtype = DType::f32;  // DeepSpeed's default: the model's; f32 is advised
  // What crosses the wire for gradients; by default grad_accum_dtype.
  DType communication_dtype = DType::f32;

  bool operator==(const PrecisionConfig&) const = default;
};

}  // namespace zl
