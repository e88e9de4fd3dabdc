// The CPU's overloads of every op: execute(op) runs it on the calling thread and `threads` - 1
// others. Ownership: nothing. Threads: pure functions of their tensors; safe from many ranks at
// once.
#pragma once

#include "core/ops/op_fwd.h"

namespace zl::cpu {

struct ExecContext {
  int threads = 1;  // OpenMP threads of this rank; results depend on it only where an op says so
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

}  // namespace zl::cpu
