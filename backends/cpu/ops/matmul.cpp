// Matrix products: oneDNN where it is faster, the packed kernel for everything else.
#include "backends/cpu/ops/gemm_onednn.h"
#include "backends/cpu/ops/gemm_packed.h"

namespace zl::cpu {

void execute(const Gemm& op, const ExecContext& context) {
  if (op.c.count() == 0) return;
  if (onednn_prefers(op)) {
    onednn_gemm(op, context);
  } else {
    packed_gemm(op, context);
  }
}

}  // namespace zl::cpu
