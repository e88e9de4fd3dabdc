// Products of a few rows with the transpose of a matrix: what a model does token by token. They
// read the matrix once, from memory, and libraries that are made for many rows do that slowly.
// Ownership: none. Threads: safe from many ranks at once.
#pragma once

#include "backends/cpu/ops/ops.h"
#include "core/ops/matmul.h"

namespace zl::cpu {

// Whether rows_gemm() takes it: c = a b^T (+ bias) with at most kFewRows rows of a, in fp32 or
// bf16.
inline constexpr std::int64_t kFewRows = 4;
bool is_of_few_rows(const Gemm& op);
// Sums in fp32, in the same order for every number of rows and threads.
void rows_gemm(const Gemm& op, const ExecContext& context);

}  // namespace zl::cpu
