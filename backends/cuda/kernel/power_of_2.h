// Powers of two for softmax: one instruction for f32 on a GPU, at most 2 units off, results below
// the smallest normal number flushed to 0. Ownership: nothing. Threads: device code.
#pragma once

#include <math.h>

#include "backends/cuda/kernel/platform.h"

namespace zl::cuda {

template <class A>
inline constexpr A kLog2E = static_cast<A>(1.4426950408889634074);  // e^x = 2^(x kLog2E)

__device__ __forceinline__ double power_of_2(double x) { return ::exp2(x); }
__device__ __forceinline__ float power_of_2(float x) {
#ifdef __CUDA_ARCH__
  float power;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(power) : "f"(x));
  return power;
#else
  return ::exp2f(x);
#endif
}

}  // namespace zl::cuda
