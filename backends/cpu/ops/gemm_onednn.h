// Matrix products by oneDNN, where it is built in and faster than the packed kernel.
// Ownership: each thread keeps the primitives of the shapes it has seen. Threads: safe from many
// ranks at once. Results depend on shapes and context.threads, not on alignment.
#pragma once

#include "backends/cpu/ops/ops.h"
#include "core/ops/matmul.h"

namespace zl::cpu {

// fp32 always; bf16 on processors that multiply it (AVX512_BF16, AMX; elsewhere oneDNN emulates
// that, slower than converting to fp32), unless oneDNN's DNNL_MAX_CPU_ISA forbids it; never f16 or
// f64. False when oneDNN is not built in.
bool onednn_prefers(const Gemm& op);

// fp32 or bf16 inputs. Throws Error{failed} when oneDNN refuses the product.
void onednn_gemm(const Gemm& op, const ExecContext& context);

}  // namespace zl::cpu
