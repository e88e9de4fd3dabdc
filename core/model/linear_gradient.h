// The gradient of a linear layer's weights: the half of its backward that nothing waits for.
// Ownership: a LinearGradient owns what it was made of. Threads: one rank's thread.
#pragma once

#include "core/model/parameter_access.h"
#include "core/rank/rank_context.h"

namespace zl {

class TensorGroup;

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
  // Each of its ranks has what it has of the rows of x (Korthikanti et al. 2022); null: all.
  const TensorGroup* group = nullptr;
};
// Adds it up and lets go of what it was made of.
void add_waiting_gradient(RankContext& context, ParameterAccess& access, LinearGradient& waiting);

}  // namespace zl
