#include "core/model/linear_gradient.h"

#include "core/model/tensor_group.h"
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

void add_waiting_gradient(RankContext& context, ParameterAccess& access, LinearGradient& waiting) {
  Tensor all_rows;
  TensorView x = waiting.x;
  if (waiting.group != nullptr) {
    x = waiting.group->gathered(x, all_rows, {"norm of all rows", waiting.unit});
  }
  add_weight_gradient(context, access, waiting.linear, waiting.dout, x);
  waiting.dout.reset();
  waiting.x.reset();
}

}  // namespace zl
