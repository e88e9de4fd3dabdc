// A matrix product cut where cuBLASLt is slow: its fast kernels take widths of whole 16 bytes. On
// an H200 (cuBLASLt 13.1) the 50257 logits of GPT-2 took 8 times as long as 50304, the gradient of
// their input 5 times and that of the weights 1.6 times, though rows begin at multiples of 16
// bytes. Ownership: views. Threads: pure functions.
#pragma once

#include <vector>

#include "core/ops/matmul.h"

namespace zl::cuda {

// Products that one after the other write what `gemm` writes: the widest part that is a multiple of
// 16 bytes in the columns of c, in its rows where a is transposed, or in the terms of the sum, and
// before it what that part leaves.
// The product alone unless its factors are 16-bit, its rows are padded, and that part is not empty.
std::vector<Gemm> aligned_parts(const Gemm& gemm);

}  // namespace zl::cuda
