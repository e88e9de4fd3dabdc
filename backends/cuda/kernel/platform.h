// What kernels are written in: CUDA C++ on a GPU, and the same words for tests/cuda_host, which
// compiles the kernels for the CPU with a block's threads as fibers. Kernels use these wrappers
// wherever plain C++ and the names below do not do:
//   __global__ __device__ __shared__ __launch_bounds__ threadIdx blockIdx blockDim gridDim
//   __syncthreads() __syncwarp() and the functions of kernel/*.h
// Ownership: nothing. Threads: device code.
#pragma once

#ifdef ZL_CUDA_HOST
#include ZL_CUDA_HOST  // the header to use instead
#else

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include <cstdint>

namespace zl::cuda {

using Stream = cudaStream_t;

// The dynamic shared memory of the block, as many bytes as launch() was given; 16-byte aligned.
template <class T>
__device__ __forceinline__ T* dynamic_shared() {
  extern __shared__ uint4 zl_dynamic_shared[];
  return reinterpret_cast<T*>(zl_dynamic_shared);
}

// Exchange within a full warp; all 32 lanes must call.
template <class T>
__device__ __forceinline__ T shuffle_xor(T value, int lane_mask) {
  return __shfl_xor_sync(0xffffffffu, value, lane_mask);
}

// 16 bytes at once; the address must be 16-byte aligned (checked by the host shim). The streaming
// forms are for data that will not be used again soon.
__device__ __forceinline__ uint4 load_16(const void* address) {
  return *static_cast<const uint4*>(address);
}
__device__ __forceinline__ uint4 load_16_streaming(const void* address) {
  return __ldcs(static_cast<const uint4*>(address));
}
__device__ __forceinline__ void store_16(void* address, uint4 value) {
  *static_cast<uint4*>(address) = value;
}
__device__ __forceinline__ void store_16_streaming(void* address, uint4 value) {
  __stcs(static_cast<uint4*>(address), value);
}
// Eight, for an 8-byte aligned address.
__device__ __forceinline__ uint2 load_8(const void* address) {
  return *static_cast<const uint2*>(address);
}
__device__ __forceinline__ void store_8(void* address, uint2 value) {
  *static_cast<uint2*>(address) = value;
}

// Starts to bring what lies around the address to the L2 cache: takes no register.
__device__ __forceinline__ void prefetch(const void* address) {
  asm volatile("prefetch.global.L2 [%0];\n" ::"l"(address));
}

// 16-byte copies from global to shared memory that end later (cp.async, sm_80). With valid = false
// zeros are written and nothing is read.
__device__ __forceinline__ void async_copy_16(void* shared, const void* global, bool valid = true) {
  const auto to = static_cast<unsigned>(__cvta_generic_to_shared(shared));
  const int bytes = valid ? 16 : 0;
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;\n" ::"r"(to), "l"(global), "r"(bytes)
               : "memory");
}
__device__ __forceinline__ void async_commit() {
  asm volatile("cp.async.commit_group;\n" ::: "memory");
}
// Waits until at most `kPending` of this thread's committed groups are under way. Other threads'
// copies need a __syncthreads() after it.
template <int kPending>
__device__ __forceinline__ void async_wait() {
  asm volatile("cp.async.wait_group %0;\n" ::"n"(kPending) : "memory");
}

// Tensor-core fragments (PTX ISA, "Matrix Fragments for mma.m16n8k16 with floating point type" and
// "ldmatrix"); all 32 lanes must call. Row pointers of ldmatrix are 16-byte aligned shared memory.
__device__ __forceinline__ void ldmatrix_x4(std::uint32_t (&r)[4], const void* row) {
  const auto from = static_cast<unsigned>(__cvta_generic_to_shared(row));
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];\n"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"(from)
               : "memory");
}
__device__ __forceinline__ void ldmatrix_x4_transposed(std::uint32_t (&r)[4], const void* row) {
  const auto from = static_cast<unsigned>(__cvta_generic_to_shared(row));
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];\n"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"(from)
               : "memory");
}

// c[16x8] += a[16x16] b[16x8], f32 accumulators; T is zl::bfloat16 or zl::float16.
template <class T>
__device__ void mma_16x8x16(float (&c)[4], const std::uint32_t (&a)[4], std::uint32_t b0,
                            std::uint32_t b1);

}  // namespace zl::cuda

#include "core/base/dtype.h"

namespace zl::cuda {

template <>
__device__ __forceinline__ void mma_16x8x16<bfloat16>(float (&c)[4], const std::uint32_t (&a)[4],
                                                      std::uint32_t b0, std::uint32_t b1) {
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, "
      "{%8,%9}, {%0,%1,%2,%3};\n"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}
template <>
__device__ __forceinline__ void mma_16x8x16<float16>(float (&c)[4], const std::uint32_t (&a)[4],
                                                     std::uint32_t b0, std::uint32_t b1) {
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, "
      "{%8,%9}, {%0,%1,%2,%3};\n"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

}  // namespace zl::cuda
#endif
