// An op in words, for messages. Ownership: none. Threads: pure.
#pragma once

#include <string>

#include "core/ops/op_fwd.h"

namespace zl::cuda {

// "gemm [64,32] bf16, [32,16] bf16, [64,16] bf16".
std::string describe(const Op& op);

}  // namespace zl::cuda
