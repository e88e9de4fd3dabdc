// The matrix product of bf16 and fp16 inputs: operands are converted to the arithmetic type while
// they are packed, as in Goto & van de Geijn, "Anatomy of High-Performance Matrix Multiplication"
// (2008). Ownership: per-thread scratch of a few MB. Threads: safe from many ranks at once. Results
// depend on the shapes only: not on alignment, nor on the thread count.
#pragma once

#include "backends/cpu/ops/ops.h"
#include "core/ops/matmul.h"

namespace zl::cpu {

void packed_gemm(const Gemm& op, const ExecContext& context);

}  // namespace zl::cpu
