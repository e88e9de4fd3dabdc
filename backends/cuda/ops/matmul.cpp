// Matrix products through cuBLASLt.
#include <cuda_runtime_api.h>

#include "backends/cuda/aligned_parts.h"
#include "backends/cuda/blas.h"
#include "backends/cuda/error.h"
#include "backends/cuda/ops/add_bias.h"
#include "backends/cuda/ops/ops.h"
#include "core/ops/matmul.h"

namespace zl::cuda {

void execute(const Gemm& op, const ExecContext& context) {
  if (op.c.count() == 0) return;
  if (op.k() == 0) {  // cuBLASLt has no empty sum
    if (!op.accumulate) {
      check(cudaMemsetAsync(op.c.data, 0, op.c.bytes(), context.stream), "cudaMemsetAsync");
    }
    if (!op.bias.empty()) add_bias(op.c, op.bias, context);
    return;
  }
  for (const Gemm& part : aligned_parts(op)) {
    const Product product = product_of(part);
    static_cast<Blas*>(context.blas)
        ->run(product, context.stream, context.workspace, context.workspace_bytes);
    if (!part.bias.empty() && !product.adds_bias()) add_bias(part.c, part.bias, context);
  }
}

}  // namespace zl::cuda
