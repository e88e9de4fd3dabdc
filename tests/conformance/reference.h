// The oracle of the conformance suite: every op as plain loops in float64, straight from the
// formulas in core/ops. Independent of the kernels; slow.
// Ownership: nothing. Threads: pure functions of their tensors.
#pragma once

#include <functional>

#include "core/ops/op.h"

namespace zl::test {

// The value as a tensor of the op's own type would hold it.
using Round = std::function<double(const TensorView&, double)>;

// Runs an op whose floating tensors are all f64 (whatever the op's own type rules say). `round`
// serves ops that go on computing with a result they have stored (the `sum` of NormForward).
void run_reference(
    const Op& op, const Round& round = [](const TensorView&, double value) { return value; });

}  // namespace zl::test
