// The one way kernels are started: launch(stream, {grid, block, shared bytes}, kernel, arguments).
// Ownership: nothing. Threads: any host thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <tuple>

#include "backends/cuda/kernel/platform.h"
#include "core/base/error.h"

namespace zl::cuda {

inline constexpr std::int64_t kMaxGridX = 2147483647, kMaxGridY = 65535;

struct LaunchShape {
  std::int64_t grid_x = 1, grid_y = 1;
  int block = 256;          // threads, a multiple of 32
  std::int64_t shared = 0;  // dynamic shared memory, bytes
};

inline void check_launch_shape(const LaunchShape& shape) {
  ZL_CHECK(shape.grid_x >= 1 && shape.grid_x <= kMaxGridX && shape.grid_y >= 1 &&
               shape.grid_y <= kMaxGridY && shape.block >= 32 && shape.block <= 1024 &&
               shape.block % 32 == 0,
           "a kernel is launched with a grid and a block that CUDA allows");
}

constexpr std::int64_t blocks_for(std::int64_t count, std::int64_t per_block) {
  return (count + per_block - 1) / per_block;
}

#ifdef ZL_CUDA_HOST
template <class... Parameters, class... Arguments>
void launch(Stream stream, const LaunchShape& shape, void (*kernel)(Parameters...),
            const Arguments&... arguments) {
  check_launch_shape(shape);
  const std::tuple<Parameters...> given(static_cast<Parameters>(arguments)...);
  host::start(stream, [shape, kernel, given] {
    host::run_grid(shape.grid_x, shape.grid_y, shape.block, shape.shared,
                   [&] { std::apply(kernel, given); });
  });
}
#else
// Enqueues. Throws Error{failed} with CUDA's reason when the launch is refused.
template <class... Parameters, class... Arguments>
void launch(Stream stream, const LaunchShape& shape, void (*kernel)(Parameters...),
            const Arguments&... arguments) {
  check_launch_shape(shape);
  const auto fail_on = [](cudaError_t status) {
    if (status != cudaSuccess) {
      throw Error(ErrorCode::failed, std::string("kernel launch: ") + cudaGetErrorString(status));
    }
  };
  constexpr std::int64_t kDefaultShared = 48 * 1024;
  if (shape.shared > kDefaultShared) {
    fail_on(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                 static_cast<int>(shape.shared)));
  }
  kernel<<<dim3(static_cast<unsigned>(shape.grid_x), static_cast<unsigned>(shape.grid_y)),
           dim3(static_cast<unsigned>(shape.block)), static_cast<std::size_t>(shape.shared),
           stream>>>(static_cast<Parameters>(arguments)...);
  fail_on(cudaPeekAtLastError());
}
#endif

}  // namespace zl::cuda
