// CUDA's overloads of every op: execute(op, context) enqueues its kernels on the context's stream.
// Ownership: nothing. Threads: any host thread whose current device owns the stream.
#pragma once

#include <cstddef>
#include <cstdint>

#include "backends/cuda/kernel/stream.h"
#include "core/ops/op_fwd.h"

namespace zl::cuda {

struct ExecContext {
  Stream stream = nullptr;
  // Scratch for this stream's op, device memory, 256-byte aligned, of the rank's pool and thus in
  // its ledger. Partial results of reductions over rows, GEMM split-K; contents do not survive.
  std::byte* workspace = nullptr;
  std::int64_t workspace_bytes = 0;
  int multiprocessors = 132;
  // As WorldOptions. Our own kernels always give the same bits; the epilogues of GEMMs depend on it
  // (product.h).
  bool deterministic = true;
  void* blas = nullptr;  // the device's cuBLASLt state (matmul.cpp only)
};

#define ZL_OVERLOAD(T) void execute(const T& op, const ExecContext& context);
ZL_OPS(ZL_OVERLOAD)
#undef ZL_OVERLOAD

}  // namespace zl::cuda
