#include "backends/cuda/ops/add_bias.h"

#include <algorithm>

#include "backends/cuda/kernel/convert.h"
#include "backends/cuda/kernel/launch.h"
#include "core/base/tensor.h"

namespace zl::cuda {
namespace {

template <class C, class B>
__global__ void add_bias_kernel(C* c, const B* bias, std::int64_t count, std::int64_t columns) {
  const std::int64_t stride = static_cast<std::int64_t>(gridDim.x) * blockDim.x;
  for (std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < count;
       i += stride) {
    const Math<C> sum = load_value(c[i]) + static_cast<Math<C>>(load_value(bias[i % columns]));
    c[i] = store_value<C>(sum);
  }
}

}  // namespace

void add_bias(const TensorView& c, const TensorView& bias, const ExecContext& context) {
  if (c.count() == 0) return;
  constexpr int kBlock = 256;
  const std::int64_t blocks =
      std::min<std::int64_t>(blocks_for(c.count(), kBlock), context.multiprocessors * 8);
  with_float_type(c.dtype, "gemm", [&](auto out) {
    with_float_type(bias.dtype, "gemm", [&](auto in) {
      using C = decltype(out);
      using B = decltype(in);
      if constexpr (std::is_same_v<C, B> || (std::is_same_v<C, float> && sizeof(B) == 2)) {
        launch(context.stream, {blocks, 1, kBlock, 0}, add_bias_kernel<C, B>, c.as<C>(),
               bias.as<B>(), c.count(), c.columns());
      } else {
        throw Error(ErrorCode::failed, std::string("gemm: no bias of ") + name_of(bias.dtype) +
                                           " for a result of " + name_of(c.dtype));
      }
    });
  });
}

}  // namespace zl::cuda
