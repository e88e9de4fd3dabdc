// Sums and maxima over a warp and a block, in one fixed order. Ownership: nothing. Threads: device
// code; every thread of the warp or block must call.
#pragma once

#include "backends/cuda/kernel/platform.h"

namespace zl::cuda {

struct AddOf {
  template <class T>
  __device__ T operator()(T a, T b) const {
    return a + b;
  }
};
struct MaxOf {
  template <class T>
  __device__ T operator()(T a, T b) const {
    return a > b ? a : b;
  }
};

// Over each group of `lanes` neighbours, a power of two; every lane gets the result of its group.
template <class T, class Combine>
__device__ __forceinline__ T lanes_reduce(T value, int lanes, Combine combine) {
  for (int offset = lanes / 2; offset > 0; offset /= 2) {
    value = combine(value, shuffle_xor(value, offset));
  }
  return value;
}
template <class T, class Combine>
__device__ __forceinline__ T warp_reduce(T value, Combine combine) {
  return lanes_reduce(value, 32, combine);
}

// Every thread gets the result. `scratch`: shared memory of 32 elements, reused after the call (the
// function begins and ends with a barrier). blockDim.x is a multiple of 32.
template <class T, class Combine>
__device__ __forceinline__ T block_reduce(T value, T* scratch, Combine combine) {
  const int lane = static_cast<int>(threadIdx.x) % 32, warp = static_cast<int>(threadIdx.x) / 32;
  const int warps = static_cast<int>(blockDim.x) / 32;
  value = warp_reduce(value, combine);
  __syncthreads();
  if (lane == 0) scratch[warp] = value;
  __syncthreads();
  value = scratch[0];
  for (int i = 1; i < warps; ++i) value = combine(value, scratch[i]);
  __syncthreads();
  return value;
}

}  // namespace zl::cuda
