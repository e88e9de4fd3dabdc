// The register-blocked matrix kernel that packed GEMM and attention share, and their scratch.
// Ownership: Scratch owns its memory. Threads: pure functions of their arguments.
#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <memory>
#include <new>

#include "backends/cpu/ops/vector.h"

namespace zl::cpu {

constexpr std::int64_t round_up(std::int64_t value, std::int64_t multiple) {
  return (value + multiple - 1) / multiple * multiple;
}

inline constexpr std::int64_t kLineBytes = 64;  // of the cache
inline constexpr std::int64_t kHugePage = std::int64_t{2} << 20;
// Of a thread's own cache that are counted on: those of its second level, up to 1 MiB.
inline std::int64_t cache_bytes() {
  static const auto bytes = static_cast<std::int64_t>(sysconf(_SC_LEVEL2_CACHE_SIZE));
  constexpr std::int64_t kMost = std::int64_t{1} << 20;
  return bytes > 0 ? std::min(bytes, kMost) : kMost;
}

// Grow-only array aligned to a cache line, in huge pages where it fills some and the system grants
// them; keep one per thread so that ops need no allocation.
template <class A>
class Scratch {
 public:
  A* reserve(std::int64_t count) {
    if (count > capacity_) {
      data_.reset();
      const std::int64_t used = count * static_cast<std::int64_t>(sizeof(A));
      const std::int64_t page = used < kHugePage ? kLineBytes : kHugePage;
      const auto bytes = static_cast<std::size_t>(round_up(used, page));
      data_.reset(static_cast<A*>(std::aligned_alloc(static_cast<std::size_t>(page), bytes)));
      if (data_ == nullptr) throw std::bad_alloc();
      if (page == kHugePage) madvise(data_.get(), bytes, MADV_HUGEPAGE);
      capacity_ = count;
    }
    return data_.get();
  }

 private:
  struct Free {
    void operator()(A* pointer) const { std::free(pointer); }
  };
  std::unique_ptr<A, Free> data_;
  std::int64_t capacity_ = 0;
};

// The left operand of a tile product: element (row, k) at data[row * row_stride + k * k_stride].
template <class A>
struct LeftOperand {
  const A* data;
  std::int64_t row_stride, k_stride;
};

// Sums of Rows x (Vectors * lanes) that stay in registers. Each element is summed in order of k, so
// a result does not depend on how a product is tiled.
template <class A, int Rows, int Vectors>
struct TileSums {
  Vector<A> sum[Rows][Vectors] = {};

  // += a[Rows, depth] b[depth, Vectors * lanes]
  [[gnu::always_inline]] void add(const LeftOperand<A>& a, const A* b, std::int64_t b_stride,
                                  std::int64_t depth) {
    for (std::int64_t k = 0; k < depth; ++k) {
      Vector<A> right[Vectors];
#pragma GCC unroll 4
      for (int v = 0; v < Vectors; ++v) right[v] = load_vector(b + k * b_stride + v * kLanes<A>);
#pragma GCC unroll 16
      for (int r = 0; r < Rows; ++r) {
        const Vector<A> left = broadcast(a.data[r * a.row_stride + k * a.k_stride]);
#pragma GCC unroll 4
        for (int v = 0; v < Vectors; ++v) sum[r][v] = multiply_add(left, right[v], sum[r][v]);
      }
    }
  }
  // += c[Rows, Vectors * lanes]
  [[gnu::always_inline]] void add(const A* c, std::int64_t c_stride) {
#pragma GCC unroll 16
    for (int r = 0; r < Rows; ++r) {
#pragma GCC unroll 4
      for (int v = 0; v < Vectors; ++v) {
        sum[r][v] = load_vector(c + r * c_stride + v * kLanes<A>) + sum[r][v];
      }
    }
  }
  // Calls f(row, its sums).
  template <class F>
  [[gnu::always_inline]] void each_row(const F& f) const {
#pragma GCC unroll 16
    for (int r = 0; r < Rows; ++r) f(r, sum[r]);
  }
  // c[Rows, Vectors * lanes] (+)= the sums
  [[gnu::always_inline]] void store(A* c, std::int64_t c_stride, bool accumulate) const {
#pragma GCC unroll 16
    for (int r = 0; r < Rows; ++r) {
#pragma GCC unroll 4
      for (int v = 0; v < Vectors; ++v) {
        A* target = c + r * c_stride + v * kLanes<A>;
        store_vector(target, accumulate ? load_vector(target) + sum[r][v] : sum[r][v]);
      }
    }
  }
};

// c[Rows, Vectors * lanes] (+)= a[Rows, depth] b[depth, Vectors * lanes].
template <class A, int Rows, int Vectors>
[[gnu::always_inline]] inline void multiply_tile(const LeftOperand<A>& a, const A* b,
                                                 std::int64_t b_stride, std::int64_t depth, A* c,
                                                 std::int64_t c_stride, bool accumulate) {
  for (int r = 0; r < Rows; ++r) {
    for (int v = 0; v < Vectors; ++v) __builtin_prefetch(c + r * c_stride + v * kLanes<A>, 1);
  }
  TileSums<A, Rows, Vectors> sums;
  sums.add(a, b, b_stride, depth);
  sums.store(c, c_stride, accumulate);
}

}  // namespace zl::cpu
