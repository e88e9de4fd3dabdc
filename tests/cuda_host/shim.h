// CUDA's words on a CPU, so that kernels run in tests without a GPU: a block's threads are fibers
// of one host thread, blocks run one after another. Included instead of CUDA's headers through
// backends/cuda/kernel/platform.h. What it makes visible: threads that miss a barrier or a warp
// exchange, copies that nobody waited for, misaligned packs, reads of shared memory that was not
// written, and (by running blocks in other fiber orders) results that depend on an order.
// Ownership: a grid owns its fibers while it runs. Threads: any; grids run one after another.
#pragma once

#include <math.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <numbers>
#include <string>

#include "core/base/dtype.h"

#define __global__
#define __device__
#define __host__
#define __forceinline__ inline
#define __launch_bounds__(...)
#define __shared__ static

struct alignas(16) uint4 {
  std::uint32_t x, y, z, w;
};
struct alignas(8) uint2 {
  std::uint32_t x, y;
};

struct CUstream_st;

namespace zl::cuda {

using Stream = CUstream_st*;

namespace host {

struct Index3 {
  unsigned x = 0, y = 0, z = 0;
};
struct Position {
  Index3 thread, block, block_size, grid;
};

// Seed of the order in which fibers run; other orders must give the same bits.
void set_fiber_order(std::uint64_t seed);
// Runs a kernel's grid in its turn on the stream; defined by the program, which may have no
// streams.
void start(Stream stream, std::function<void()> grid);
// Runs the blocks of a grid, one grid at a time in the process. Throws Error{failed} naming block
// and thread when threads disagree about barriers, and whatever a kernel throws.
void run_grid(std::int64_t grid_x, std::int64_t grid_y, int block, std::int64_t shared,
              const std::function<void()>& body);

const Position& position();                       // of the running fiber
std::byte* shared_memory();                       // the block's dynamic shared memory
[[noreturn]] void fail(const std::string& what);  // of the running fiber

void sync_threads();

// All 32 lanes of the warp bring `bytes` <= kSlot bytes; returns the warp's slots, valid until the
// caller's next exchange.
inline constexpr std::size_t kSlot = 32;
struct Slots {
  alignas(16) std::byte lane[32][kSlot];
  double product[16][8];  // of matrices that the lanes brought
};
// combine: what the last lane to come does for all.
const Slots& exchange(const void* mine, std::size_t bytes, void (*combine)(Slots&) = nullptr);

void async_copy(void* shared, const void* global, bool valid);
void async_commit();
void async_wait(int pending);

template <class T>
T slot(const Slots& slots, int lane) {
  static_assert(sizeof(T) <= kSlot);
  T value;
  std::memcpy(&value, slots.lane[lane], sizeof(T));
  return value;
}

inline void require_aligned(const void* address, const char* what, unsigned bytes = 16) {
  if (reinterpret_cast<std::uintptr_t>(address) % bytes != 0) {
    fail(std::string(what) + ": the address is not a multiple of " + std::to_string(bytes));
  }
}

inline int lane() { return static_cast<int>(position().thread.x % 32); }

}  // namespace host

template <class T>
T* dynamic_shared() {
  return reinterpret_cast<T*>(host::shared_memory());
}

template <class T>
T shuffle_xor(T value, int lane_mask) {
  return host::slot<T>(host::exchange(&value, sizeof(T)), host::lane() ^ lane_mask);
}

inline uint4 load_16(const void* address) {
  host::require_aligned(address, "16-byte load");
  uint4 value;
  std::memcpy(&value, address, 16);
  return value;
}
inline uint4 load_16_streaming(const void* address) { return load_16(address); }
inline void store_16(void* address, uint4 value) {
  host::require_aligned(address, "16-byte store");
  std::memcpy(address, &value, 16);
}
inline void store_16_streaming(void* address, uint4 value) { store_16(address, value); }
inline uint2 load_8(const void* address) {
  host::require_aligned(address, "8-byte load", 8);
  uint2 value;
  std::memcpy(&value, address, 8);
  return value;
}
inline void store_8(void* address, uint2 value) {
  host::require_aligned(address, "8-byte store", 8);
  std::memcpy(address, &value, 8);
}

inline void prefetch(const void*) {}
inline void async_copy_16(void* shared, const void* global, bool valid = true) {
  host::async_copy(shared, global, valid);
}
inline void async_commit() { host::async_commit(); }
template <int kPending>
void async_wait() {
  host::async_wait(kPending);
}

// Lane i brings row i % 8 of matrix i / 8; a row is read when its lane arrives.
inline const host::Slots& matrix_rows(const void* row) {
  host::require_aligned(row, "ldmatrix row");
  return host::exchange(row, 16);
}
inline void ldmatrix_x4(std::uint32_t (&r)[4], const void* row) {
  const host::Slots& rows = matrix_rows(row);
  const int lane = host::lane();
  for (int m = 0; m < 4; ++m) std::memcpy(&r[m], rows.lane[m * 8 + lane / 4] + lane % 4 * 4, 4);
}
inline void ldmatrix_x4_transposed(std::uint32_t (&r)[4], const void* row) {
  const host::Slots& rows = matrix_rows(row);
  const int lane = host::lane();
  for (int m = 0; m < 4; ++m) {
    std::uint16_t pair[2];
    for (int e = 0; e < 2; ++e) {
      std::memcpy(&pair[e], rows.lane[m * 8 + lane % 4 * 2 + e] + lane / 4 * 2, 2);
    }
    std::memcpy(&r[m], pair, 4);
  }
}

// PTX ISA, "Matrix Fragments for mma.m16n8k16": a(row, k) is in lane row % 8 * 4 + k % 8 / 2,
// register row / 8 + k / 8 * 2; b(k, column) in lane column * 4 + k % 8 / 2, register k / 8.
template <class T>
void multiply_fragments(host::Slots& slots) {
  const auto element = [&](int lane, int from_register, int half) {
    std::uint16_t bits;
    std::memcpy(&bits, slots.lane[lane] + from_register * 4 + half * 2, 2);
    return double{to_float(T{bits})};
  };
  double b[16][8];
  for (int k = 0; k < 16; ++k) {
    for (int column = 0; column < 8; ++column) {
      b[k][column] = element(column * 4 + k % 8 / 2, 4 + k / 8, k % 2);
    }
  }
  for (int row = 0; row < 16; ++row) {
    double sums[8] = {};
    for (int k = 0; k < 16; ++k) {
      const double a = element(row % 8 * 4 + k % 8 / 2, row / 8 + k / 8 * 2, k % 2);
      for (int column = 0; column < 8; ++column) sums[column] += a * b[k][column];
    }
    std::memcpy(slots.product[row], sums, sizeof sums);
  }
}
template <class T>
void mma_16x8x16(float (&c)[4], const std::uint32_t (&a)[4], std::uint32_t b0, std::uint32_t b1) {
  const std::uint32_t mine[6] = {a[0], a[1], a[2], a[3], b0, b1};
  const host::Slots& slots = host::exchange(&mine, sizeof(mine), multiply_fragments<T>);
  const int lane = host::lane();
  for (int i = 0; i < 4; ++i) {
    const int row = lane / 4 + i / 2 * 8, column = lane % 4 * 2 + i % 2;
    c[i] = static_cast<float>(double{c[i]} + slots.product[row][column]);
  }
}

using std::max;
using std::min;

}  // namespace zl::cuda

#define threadIdx (::zl::cuda::host::position().thread)
#define blockIdx (::zl::cuda::host::position().block)
#define blockDim (::zl::cuda::host::position().block_size)
#define gridDim (::zl::cuda::host::position().grid)

inline void __syncthreads() { zl::cuda::host::sync_threads(); }
inline void __syncwarp() { zl::cuda::host::exchange(nullptr, 0); }

inline float rsqrtf(float x) { return 1.0f / sqrtf(x); }
inline double rsqrt(double x) { return 1.0 / sqrt(x); }
inline void sincospi(double x, double* sine, double* cosine) {
  *sine = sin(std::numbers::pi * x);
  *cosine = cos(std::numbers::pi * x);
}
inline float __fmaf_rn(float a, float b, float c) { return fmaf(a, b, c); }
inline float __fadd_rn(float a, float b) { return a + b; }
inline float __fmul_rn(float a, float b) { return a * b; }
inline float __fdiv_rn(float a, float b) { return a / b; }
inline float __fsqrt_rn(float x) { return sqrtf(x); }
inline float __frcp_rn(float x) { return 1.0f / x; }
inline std::uint32_t __float_as_uint(float x) { return std::bit_cast<std::uint32_t>(x); }
inline float __uint_as_float(std::uint32_t x) { return std::bit_cast<float>(x); }
inline int __popc(unsigned x) { return __builtin_popcount(x); }
inline int __ffs(int x) { return __builtin_ffs(x); }

// Atomics: fibers switch at barriers only, so plain code is atomic.
template <class T>
T atomicAdd(T* address, std::type_identity_t<T> value) {
  const T before = *address;
  *address = before + value;
  return before;
}
template <class T>
T atomicMax(T* address, std::type_identity_t<T> value) {
  const T before = *address;
  *address = std::max(before, value);
  return before;
}
template <class T>
T atomicMin(T* address, std::type_identity_t<T> value) {
  const T before = *address;
  *address = std::min(before, value);
  return before;
}
