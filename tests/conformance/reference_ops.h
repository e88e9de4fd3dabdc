// Every op as plain loops in float64, one overload each, and what they share.
// Ownership: nothing. Threads: pure functions of their tensors.
#pragma once

#include "core/ops/op.h"
#include "tests/conformance/reference.h"

namespace zl::test {

using Index = std::int64_t;

inline double& at(const TensorView& view, Index i) { return view.as<double>()[i]; }
inline Index token_at(const TensorView& view, Index i) { return view.as<std::int32_t>()[i]; }

inline double dropout_factor(const DropoutSpec& spec, Index i) {
  if (spec.p <= 0) return 1;
  const bool kept = random_uniform(spec.key, spec.base + static_cast<std::uint64_t>(i)) >= spec.p;
  return kept ? 1.0 / (1.0 - static_cast<double>(spec.p)) : 0.0;
}

inline void put(const TensorView& view, Index i, double value, bool accumulate) {
  at(view, i) = value + (accumulate ? at(view, i) : 0.0);
}

void reference(const Gemm& op);
void reference(const BiasBackward& op);
void reference(const EmbeddingForward& op);
void reference(const EmbeddingBackward& op);
void reference(const NormForward& op, const Round& round);
void reference(const NormBackward& op);
void reference(const Rope& op);
void reference(const AttentionForward& op);
void reference(const AttentionBackward& op);
void reference(const ActivationForward& op);
void reference(const ActivationBackward& op);
void reference(const CrossEntropy& op);
void reference(const Sum& op);
void reference(const Fill& op);
void reference(const Axpy& op);
void reference(const Dropout& op);
void reference(const RandomNormal& op);
void reference(const AbsMax& op);
void reference(const SquaredSum& op);
void reference(const AdamStep& op);
void reference(const SgdStep& op);
void reference(const LambUpdate& op);
void reference(const LambApply& op);
void reference(const SignCompress& op);
void reference(const SignAverage& op);
void reference(const SignUnpack& op);
void reference(const MomentumStep& op);
void reference(const FrozenAdamStep& op);
void reference(const LocalAdamStep& op);
void reference(const DenominatorScale& op);
void reference(const SharedAdamStep& op);
void reference(const OnebitLambUpdate& op);
void reference(const OnebitLambTrust& op);
void reference(const ScaledStep& op);
void reference(const BlockQuantize& op);
void reference(const BlockDequantize& op);
void reference(const BlockSum& op);

}  // namespace zl::test
