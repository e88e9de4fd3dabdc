// Tile operations of attention on tensor cores (sm_80 and later): bf16 or f16 tiles in shared
// memory, mma.m16n8k16 with f32 sums (fragments: PTX ISA, "Matrix Fragments for mma.m16n8k16").
// A tile row is kWidth elements; its 16-byte pack p lies at p XOR (row % 8), so that the eight rows
// of an ldmatrix, and a warp's asynchronous copies, touch all 32 banks once.
// Interface: attention_tiles.h. Ownership: nothing. Threads: device code, four warps; warp w owns
// rows [16 kRowBlocks w, 16 kRowBlocks (w + 1)) of the score tile and of every sum.
#pragma once

#include "backends/cuda/ops/attention_tiles.h"

namespace zl::cuda {

// Two values rounded to T, the first in the low half.
template <class T>
__device__ __forceinline__ std::uint32_t pack_pair(float low, float high) {
#ifdef __CUDA_ARCH__
  if constexpr (std::is_same_v<T, bfloat16>) {
    const __nv_bfloat162 pair = __floats2bfloat162_rn(low, high);
    return *reinterpret_cast<const std::uint32_t*>(&pair);
  } else {
    const __half2 pair = __floats2half2_rn(low, high);
    return *reinterpret_cast<const std::uint32_t*>(&pair);
  }
#else
  return std::uint32_t{from_float<T>(low).bits} | std::uint32_t{from_float<T>(high).bits} << 16;
#endif
}

// kHoldRows: the row operand stays in registers.
template <class T, int kWidthOf, int kRowBlocks, int kColumnsOf, bool kHoldRows = false>
class MmaTiles {
 public:
  using Source = const T*;
  using Target = T*;
  using Stored = T;
  using Arithmetic = float;
  static constexpr int kWarps = 4, kThreads = 32 * kWarps, kBlocksPerMultiprocessor = 2;
  static constexpr int kWidth = kWidthOf, kStages = 2;
  static constexpr int kTileRows = 16 * kRowBlocks * kWarps, kTileColumns = kColumnsOf;
  static constexpr int kRows = 2 * kRowBlocks, kRowLanes = 4;
  static constexpr std::int64_t kRowTile = kTileRows * kWidth, kColumnTile = kTileColumns * kWidth;
  static constexpr std::int64_t kScratchBytes = 0;

  template <int kColumns>
  struct Values {
    static constexpr int kOwn = kColumns / 4;
    float part[kRowBlocks][kColumns / 8][4] = {};
    __device__ __forceinline__ float& at(int r, int c) {
      return part[r / 2][c / 2][r % 2 * 2 + c % 2];
    }
  };

  struct RowOperand {
    const T* tile;
    std::uint32_t held[kHoldRows ? kWidth / 16 : 1][kRowBlocks][4] = {};
  };

  static Source source(const TensorView& view) { return view.as<const T>(); }
  static Target target(const TensorView& view) { return view.as<T>(); }

  __device__ explicit MmaTiles(std::byte*)
      : thread_(static_cast<int>(threadIdx.x)),
        lane_(thread_ % 32),
        first_row_(thread_ / 32 * 16 * kRowBlocks),
        plain_((lane_ % 16) * kWidth + ((lane_ / 16) ^ (lane_ % 8)) * 8),
        crossed_((lane_ % 8 + lane_ / 16 * 8) * kWidth + ((lane_ / 8 % 2) ^ (lane_ % 8)) * 8) {}

  __device__ __forceinline__ int row(int r) const {
    return first_row_ + r / 2 * 16 + r % 2 * 8 + lane_ / 4;
  }
  __device__ __forceinline__ int column(int c) const { return c / 2 * 8 + lane_ % 4 * 2 + c % 2; }
  // column(c) is one of the eight from here on.
  static constexpr int column_base(int c) { return c / 2 * 8; }
  // Of the rows of this warp.
  __device__ __forceinline__ int first_row() const { return first_row_; }
  __device__ __forceinline__ int last_row() const { return first_row_ + 16 * kRowBlocks - 1; }

  template <int kCount>
  __device__ __forceinline__ void copy(T* tile, const HeadRows<Source>& from, int first) const {
    constexpr int kPacks = kWidth / 8, kStep = kThreads / kPacks;  // kStep: a multiple of 8
    static_assert(kCount % kStep == 0);
    const int pack = thread_ % kPacks, top = thread_ / kPacks;
    const bool inside = pack * 8 < from.width;
    const T* source = from.at(first + top) + pack * 8;
    T* target = tile + top * kWidth + (pack ^ (top % 8)) * 8;
#pragma unroll
    for (int i = 0; i < kCount; i += kStep, source += kStep * from.stride) {
      async_copy_16(target + i * kWidth, source, inside && first + top + i < from.count);
    }
  }
  static __device__ __forceinline__ void commit() { async_commit(); }
  static __device__ __forceinline__ void wait() { async_wait<0>(); }

  __device__ __forceinline__ RowOperand rows(const T* tile) const {
    RowOperand x{tile};
    if constexpr (kHoldRows) {
#pragma unroll
      for (int step = 0; step < kWidth / 16; ++step) load_left(tile, step, x.held[step]);
    }
    return x;
  }

  // c = x y^T, but for the 16 columns at a time that none of 16 rows meets: zero.
  template <class Meets = EveryRow>
  __device__ __forceinline__ void multiply(const RowOperand& x, const T* y, int,
                                           Values<kTileColumns>& c, const Meets& meets = {}) const {
    static_assert(kRowBlocks == 1 || std::is_same_v<Meets, EveryRow>);
    const int crossed = recomputed(crossed_);
#pragma unroll(kHoldRows ? kWidth / 16 : 2)
    for (int step = 0; step < kWidth / 16; ++step) {
      std::uint32_t left[kRowBlocks][4];
      left_operand(x, step, left);
#pragma unroll
      for (int n = 0; n < kTileColumns / 16; ++n) {
        if (!meets(first_row_, n * 16)) continue;
        std::uint32_t right[4];
        ldmatrix_x4(right, y + n * 16 * kWidth + (crossed ^ (step * 16)));
#pragma unroll
        for (int b = 0; b < kRowBlocks; ++b) {
          mma_16x8x16<T>(c.part[b][2 * n], left[b], right[0], right[1]);
          mma_16x8x16<T>(c.part[b][2 * n + 1], left[b], right[2], right[3]);
        }
      }
    }
  }

  // sum += c y: two neighbouring 16 x 8 sums of c are, rounded, one left operand. Whether rows meet
  // is asked once for 16 of each.
  template <class Meets = EveryRow>
  __device__ __forceinline__ void accumulate(const Values<kTileColumns>& c, const T* y,
                                             Values<kWidth>& sum, const Meets& meets = {}) const {
    static_assert(kRowBlocks == 1 || std::is_same_v<Meets, EveryRow>);
    const int plain = recomputed(plain_);
#pragma unroll
    for (int step = 0; step < kTileColumns / 16; ++step) {
      if (!meets(first_row_, step * 16)) continue;
      std::uint32_t left[kRowBlocks][4];
#pragma unroll
      for (int b = 0; b < kRowBlocks; ++b) {
#pragma unroll
        for (int i = 0; i < 4; ++i) {
          const float* pair = c.part[b][2 * step + i / 2] + i % 2 * 2;
          left[b][i] = pack_pair<T>(pair[0], pair[1]);
        }
      }
#pragma unroll
      for (int n = 0; n < kWidth / 16; ++n) {
        std::uint32_t right[4];
        ldmatrix_x4_transposed(right, y + step * 16 * kWidth + (plain ^ (n * 16)));
#pragma unroll
        for (int b = 0; b < kRowBlocks; ++b) {
          mma_16x8x16<T>(sum.part[b][2 * n], left[b], right[0], right[1]);
          mma_16x8x16<T>(sum.part[b][2 * n + 1], left[b], right[2], right[3]);
        }
      }
    }
  }

  // `stage`: a row tile whose rows of this warp are no longer needed; whole packs leave from it.
  __device__ __forceinline__ void store(Values<kWidth>& values, const float (&factor)[kRows],
                                        T* stage, const HeadRows<Target>& to, int first) const {
    __syncwarp();
#pragma unroll
    for (int r = 0; r < kRows; ++r) {
      T* line = stage + row(r) * kWidth + lane_ % 4 * 2;
#pragma unroll
      for (int pack = 0; pack < kWidth / 8; ++pack) {
        *reinterpret_cast<std::uint32_t*>(line + (pack ^ (row(r) % 8)) * 8) = pack_pair<T>(
            factor[r] * values.at(r, 2 * pack), factor[r] * values.at(r, 2 * pack + 1));
      }
    }
    __syncwarp();
    constexpr int kPacks = kWidth / 8, kStep = 32 / kPacks;
    const int pack = lane_ % kPacks;
#pragma unroll
    for (int i = lane_ / kPacks; i < 16 * kRowBlocks; i += kStep) {
      const int line = first_row_ + i;
      if (first + line < to.count && pack * 8 < to.width) {
        store_16(to.at(first + line) + pack * 8,
                 load_16(stage + line * kWidth + (pack ^ (line % 8)) * 8));
      }
    }
  }

 private:
  __device__ __forceinline__ void left_operand(const RowOperand& x, int step,
                                               std::uint32_t (&left)[kRowBlocks][4]) const {
    if constexpr (kHoldRows) {
#pragma unroll
      for (int i = 0; i < 4 * kRowBlocks; ++i) left[i / 4][i % 4] = x.held[step][i / 4][i % 4];
    } else {
      load_left(x.tile, step, left);
    }
  }
  __device__ __forceinline__ void load_left(const T* tile, int step,
                                            std::uint32_t (&left)[kRowBlocks][4]) const {
    const int plain = recomputed(plain_);
#pragma unroll
    for (int b = 0; b < kRowBlocks; ++b) {
      ldmatrix_x4(left[b], tile + (first_row_ + 16 * b) * kWidth + (plain ^ (step * 16)));
    }
  }

  int thread_, lane_, first_row_;
  // This lane's row of an ldmatrix over a 16 x 16 part: matrices 1 and 2 are below and to the right
  // (left operands, transposed right operands), or to the right and below (right operands).
  int plain_, crossed_;
};

}  // namespace zl::cuda
