// The part of a GEMM that cuBLASLt does not take: a bias of another type or in f64.
// Ownership: nothing. Threads: as ops.h.
#pragma once

#include "backends/cuda/ops/ops.h"
#include "core/base/tensor.h"

namespace zl::cuda {

// c[M,N] += bias[N], added in c's arithmetic type and rounded once. c: f64 or f32 with bias of the
// same or a 16-bit type, or both of one 16-bit type.
void add_bias(const TensorView& c, const TensorView& bias, const ExecContext& context);

}  // namespace zl::cuda
