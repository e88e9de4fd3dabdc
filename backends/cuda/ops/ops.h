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

void execute(const Gemm& op, const ExecContext& context);
void execute(const BiasBackward& op, const ExecContext& context);
void execute(const EmbeddingForward& op, const ExecContext& context);
void execute(const EmbeddingBackward& op, const ExecContext& context);
void execute(const NormForward& op, const ExecContext& context);
void execute(const NormBackward& op, const ExecContext& context);
void execute(const Rope& op, const ExecContext& context);
void execute(const AttentionForward& op, const ExecContext& context);
void execute(const AttentionBackward& op, const ExecContext& context);
void execute(const ActivationForward& op, const ExecContext& context);
void execute(const ActivationBackward& op, const ExecContext& context);
void execute(const CrossEntropy& op, const ExecContext& context);
void execute(const Sum& op, const ExecContext& context);
void execute(const Fill& op, const ExecContext& context);
void execute(const Axpy& op, const ExecContext& context);
void execute(const Dropout& op, const ExecContext& context);
void execute(const RandomNormal& op, const ExecContext& context);
void execute(const AbsMax& op, const ExecContext& context);
void execute(const SquaredSum& op, const ExecContext& context);
void execute(const AdamStep& op, const ExecContext& context);
void execute(const SgdStep& op, const ExecContext& context);
void execute(const LambUpdate& op, const ExecContext& context);
void execute(const LambApply& op, const ExecContext& context);
void execute(const SignCompress& op, const ExecContext& context);
void execute(const SignAverage& op, const ExecContext& context);
void execute(const SignUnpack& op, const ExecContext& context);
void execute(const MomentumStep& op, const ExecContext& context);
void execute(const FrozenAdamStep& op, const ExecContext& context);
void execute(const LocalAdamStep& op, const ExecContext& context);
void execute(const DenominatorScale& op, const ExecContext& context);
void execute(const SharedAdamStep& op, const ExecContext& context);
void execute(const OnebitLambUpdate& op, const ExecContext& context);
void execute(const OnebitLambTrust& op, const ExecContext& context);
void execute(const ScaledStep& op, const ExecContext& context);
void execute(const BlockQuantize& op, const ExecContext& context);
void execute(const BlockDequantize& op, const ExecContext& context);
void execute(const BlockSum& op, const ExecContext& context);

}  // namespace zl::cuda
