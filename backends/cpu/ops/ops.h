// The CPU's overloads of every op: execute(op) runs it on the calling thread and `threads` - 1
// others. Ownership: nothing. Threads: pure functions of their tensors; safe from many ranks at
// once.
#pragma once

#include "core/ops/op_fwd.h"

namespace zl::cpu {

struct ExecContext {
  int threads = 1;  // OpenMP threads of this rank; results depend on it only where an op says so
};

#define ZL_OVERLOAD(T) void execute(const T& op, const ExecContext& context);
ZL_OPS(ZL_OVERLOAD)
#undef ZL_OVERLOAD

}  // namespace zl::cpu
