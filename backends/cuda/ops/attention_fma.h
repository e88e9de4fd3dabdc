// Tile operations of attention with plain multiply-adds, for every type and for head sizes up to
// 256; f32 arithmetic for all but f64. Tiles widened to the arithmetic type in shared memory, rows
// one element longer than kWidth against bank conflicts, kSide x kSide threads with kRows x kRows
// scores each. About 2 loads of shared memory for 4 multiply-adds: a fifth of the FMA peak is what
// to expect. Interface: attention_tiles.h. Ownership: nothing. Threads: device code; the kSide
// threads that share their rows are in one warp.
#pragma once

#include "backends/cuda/ops/attention_tiles.h"

namespace zl::cuda {

__device__ __forceinline__ float load_at(const AnyFloats& p, int i) { return p.load(i); }
__device__ __forceinline__ double load_at(const double* p, int i) { return p[i]; }
__device__ __forceinline__ void store_at(const AnyFloats& p, int i, float x) { p.store(i, x); }
__device__ __forceinline__ void store_at(double* p, int i, double x) { p[i] = x; }

// A: float or double.
template <class A, int kWidthOf>
class FmaTiles {
  static constexpr bool kWide = std::is_same_v<A, double>;

 public:
  using Source = std::conditional_t<kWide, const double*, AnyFloats>;
  using Target = std::conditional_t<kWide, double*, AnyFloats>;
  using Arithmetic = A;
  using Stored = A;
  static constexpr int kWidth = kWidthOf, kStages = 1;
  // Four tiles take 64 KiB.
  static constexpr int kTile = 16384 / (kWidth * static_cast<int>(sizeof(Stored)));
  static constexpr int kTileRows = kTile, kTileColumns = kTile;
  static constexpr int kRows = kTile >= 32 ? 4 : kTile / 8, kSide = kTile / kRows;
  static constexpr int kRowLanes = kSide, kThreads = kSide * kSide, kBlocksPerMultiprocessor = 1;
  static constexpr std::int64_t kRowTile = kTile * (kWidth + 1), kColumnTile = kRowTile;
  static constexpr std::int64_t kScratchBytes = kTile * (kTile + 1) * sizeof(Stored);

  template <int kColumns>
  struct Values {
    static constexpr int kOwn = kColumns / kSide;
    Arithmetic value[kRows][kOwn] = {};
    __device__ __forceinline__ Arithmetic& at(int r, int c) { return value[r][c]; }
  };

  struct RowOperand {
    const Stored* tile;
  };

  static Source source(const TensorView& view) {
    if constexpr (kWide) {
      return view.as<const double>();
    } else {
      return AnyFloats(view);
    }
  }
  static Target target(const TensorView& view) {
    if constexpr (kWide) {
      return view.as<double>();
    } else {
      return AnyFloats(view);
    }
  }

  // `scratch`: kScratchBytes of shared memory.
  __device__ explicit FmaTiles(std::byte* scratch)
      : thread_(static_cast<int>(threadIdx.x)), scores_(reinterpret_cast<Stored*>(scratch)) {}

  __device__ __forceinline__ int row(int r) const { return r * kSide + thread_ / kSide; }
  __device__ __forceinline__ int column(int c) const { return c * kSide + thread_ % kSide; }
  static constexpr int column_base(int c) { return c * kSide; }
  __device__ __forceinline__ int first_row() const { return 0; }
  __device__ __forceinline__ int last_row() const { return kTile - 1; }

  template <int kCount>
  __device__ __forceinline__ void copy(Stored* tile, const HeadRows<Source>& from,
                                       int first) const {
    for (int i = thread_; i < kCount * kWidth; i += kThreads) {
      const int line = i / kWidth, d = i % kWidth;
      const bool inside = first + line < from.count && d < from.width;
      tile[line * (kWidth + 1) + d] = inside ? load_at(from.at(first + line), d) : Stored{0};
    }
  }
  static __device__ __forceinline__ void commit() {}
  static __device__ __forceinline__ void wait() {}

  __device__ __forceinline__ RowOperand rows(const Stored* tile) const { return {tile}; }

  // c = x y^T over the first `depth` columns; the others are zero.
  template <class Meets = EveryRow>
  __device__ __forceinline__ void multiply(const RowOperand& x, const Stored* y, int depth,
                                           Values<kTileColumns>& c, const Meets& = {}) const {
#pragma unroll 4
    for (int d = 0; d < depth; ++d) {
      Stored left[kRows], right[kRows];
#pragma unroll
      for (int i = 0; i < kRows; ++i) left[i] = x.tile[row(i) * (kWidth + 1) + d];
#pragma unroll
      for (int i = 0; i < kRows; ++i) right[i] = y[column(i) * (kWidth + 1) + d];
#pragma unroll
      for (int i = 0; i < kRows; ++i) {
#pragma unroll
        for (int j = 0; j < kRows; ++j) c.value[i][j] += left[i] * right[j];
      }
    }
  }

  // sum += c y. A row of c is exchanged among the threads that own it.
  template <class Meets = EveryRow>
  __device__ __forceinline__ void accumulate(const Values<kTileColumns>& c, const Stored* y,
                                             Values<kWidth>& sum, const Meets& meets = {}) const {
    __syncwarp();
#pragma unroll
    for (int i = 0; i < kRows; ++i) {
#pragma unroll
      for (int j = 0; j < kRows; ++j) scores_[row(i) * (kTile + 1) + column(j)] = c.value[i][j];
    }
    __syncwarp();
    for (int k = 0; k < kTile; ++k) {
      Stored left[kRows];
      bool met[kRows];
#pragma unroll
      for (int i = 0; i < kRows; ++i) {
        left[i] = scores_[row(i) * (kTile + 1) + k];
        met[i] = meets(row(i), k);
      }
#pragma unroll
      for (int j = 0; j < kWidth / kSide; ++j) {
        const Stored right = y[k * (kWidth + 1) + column(j)];
#pragma unroll
        for (int i = 0; i < kRows; ++i) sum.value[i][j] += left[i] * (met[i] ? right : Stored{0});
      }
    }
  }

  __device__ __forceinline__ void store(Values<kWidth>& values, const Stored (&factor)[kRows],
                                        Stored*, const HeadRows<Target>& to, int first) const {
#pragma unroll
    for (int r = 0; r < kRows; ++r) {
      if (first + row(r) >= to.count) continue;
#pragma unroll
      for (int c = 0; c < kWidth / kSide; ++c) {
        if (column(c) >= to.width) continue;
        store_at(to.at(first + row(r)), column(c), factor[r] * values.at(r, c));
      }
    }
  }

 private:
  int thread_;
  Stored* scores_;
};

// Calls f(FmaTiles) with room for the head size. f64 is for tests: one size does.
template <class F>
void with_fma_tiles(DType dtype, std::int64_t head_size, F&& f) {
  if (dtype == DType::f64) return f(std::type_identity<FmaTiles<double, 256>>{});
  if (head_size <= 64) return f(std::type_identity<FmaTiles<float, 64>>{});
  if (head_size <= 128) return f(std::type_identity<FmaTiles<float, 128>>{});
  f(std::type_identity<FmaTiles<float, 256>>{});
}

}  // namespace zl::cuda
