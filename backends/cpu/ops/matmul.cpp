// Matrix products: oneDNN where it is built in and fast (fp32; bf16 with AVX512_BF16 or AMX), Eigen
// for fp64 and as the fp32 fallback, and the packed kernel for the 16-bit types that neither does
// well (Eigen's bf16 product is scalar; oneDNN's emulated one is slower than converting while
// packing); a few rows by themselves.
#include "core/ops/matmul.h"
#include "backends/cpu/ops/gemm_eigen.h"
#include "backends/cpu/ops/gemm_onednn.h"
#include "backends/cpu/ops/gemm_packed.h"
#include "backends/cpu/ops/gemm_rows.h"

namespace zl::cpu {

void execute(const Gemm& op, const ExecContext& context) {
  if (op.c.count() == 0) return;
  if (is_of_few_rows(op)) {
    rows_gemm(op, context);
  } else if (onednn_prefers(op)) {
    onednn_gemm(op, context);
  } else if (is_half(op.a.dtype)) {
    packed_gemm(op, context);
  } else {
    eigen_gemm(op, context);
  }
}

}  // namespace zl::cpu
