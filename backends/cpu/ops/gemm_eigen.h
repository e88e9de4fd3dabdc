// fp64 and fp32 matrix products by Eigen: always there, also without oneDNN.
// Ownership: nothing. Threads: safe from many ranks at once. Results depend on the shapes only, not
// on the thread count.
#pragma once

#include "backends/cpu/ops/ops.h"
#include "core/ops/matmul.h"

namespace zl::cpu {

void eigen_gemm(const Gemm& op, const ExecContext& context);

}  // namespace zl::cpu
