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

#define ZL_REFERENCE(T) void reference(const T& op);
ZL_OPS(ZL_REFERENCE)
#undef ZL_REFERENCE
void reference(const NormForward& op, const Round& round);  // the only one it has

}  // namespace zl::test
