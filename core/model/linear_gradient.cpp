#include "core/model/linear_gradient.h"

#include "core/ops/elementwise.h"
#include "core/ops/matmul.h"

namespace zl {

void add_weight_gradient(RankContext& context, ParameterAccess& access, const LinearWeights& linear,
                         const TensorView& dout, const TensorView& x) {
  const GradientTarget dweight = access.gradient(linear.weight);
  context.run(Gemm{
      .a = dout, .b = x, .c = dweight.view, .trans_a = true, .accumulate = dweight.accumulate});
  access.gradient_ready(linear.weight);
  if (linear.bias < 0) return;
  const GradientTarget dbias = access.gradient(linear.bias);
  context.run(BiasBackward{.dout = dout, .dbias = dbias.view, .accumulate = dbias.accumulate});
  access.gradient_ready(linear.bias);
}

}  // namespace zl
