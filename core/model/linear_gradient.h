// The gradient of a linear layer's weights: the half of its backward that nothing waits for.
// Ownership: a LinearGradient owns what it was made of. Threads: one rank's thread.
#pragma once

#include "core/model/parameter_access.h"
#include "core/rank/rank_context.h"

namespace zl {

// out = x W^T + b: dW[out, in] (+)= dout^T x, db[out] (+)= the sum of dout over rows.
struct LinearWeights {
  int weight = -1, bias = -1;  // parameters; no bias: -1
};
void add_weight_gradient(RankContext& context, ParameterAccess& access, const LinearWeights& linear,
                         const TensorView& dout, const TensorView& x);

// One that waits for its time.
struct LinearGradient {
  int unit = -1;
  LinearWeights linear;
  Tensor dout, x;  // [rows, out], [rows, in]
};

}  // namespace zl
