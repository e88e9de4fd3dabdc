// Eight-bit blocks: a warp takes a block to quantize; sums and copies back go in runs.
#include <float.h>
#include <math.h>

#include <algorithm>

#include "backends/cuda/kernel/reduce.h"
#include "backends/cuda/kernel/runs.h"
#include "core/ops/quantize.h"

namespace zl::cuda {
namespace {

constexpr int kThreads = 256, kWarps = kThreads / 32;
constexpr float kLargest = 127.0f;

using Values = Packed<signed char, kRun>;

// Whether the elements of a run are neighbours in one block, and can be read at once.
bool has_whole_runs(const TensorView& q, std::int64_t block) {
  return reinterpret_cast<std::uintptr_t>(q.data) % kRun == 0 && q.columns() % kRun == 0 &&
         block % kRun == 0;
}

// Bit patterns of magnitudes order as the values do, with infinity and NaN above all finite ones.
__device__ __forceinline__ std::uint32_t largest_bits(const float (&values)[kRun]) {
  std::uint32_t largest = 0;
#pragma unroll
  for (int i = 0; i < kRun; ++i) {
    largest = MaxOf{}(largest, __float_as_uint(values[i]) & 0x7fffffffu);
  }
  return largest;
}

// The nearest integer, ties to even, of a |value| < 2^22: the last bits of its sum with 1.5 * 2^23.
// Conversions take four times as long.
__device__ __forceinline__ signed char nearest(float value) {
  return static_cast<signed char>(__float_as_uint(__fadd_rn(value, 0x1.8p23f)) & 0xff);
}

__device__ __forceinline__ void put_run(signed char* q, std::int64_t length, bool packed,
                                        const float (&values)[kRun], float inverse, bool sends) {
  Values run;
#pragma unroll
  for (int i = 0; i < kRun; ++i) {
    run.at[i] = sends ? nearest(__fmul_rn(values[i], inverse)) : static_cast<signed char>(0);
  }
  if (packed && length == kRun) return store_some<kRun>(q, run);
#pragma unroll
  for (int i = 0; i < kRun; ++i) {
    if (i < length) q[i] = run.at[i];
  }
}

// Lanes take runs of eight in turn, and hold the first: a block of 256 is read once.
template <class T>
__global__ void __launch_bounds__(kThreads)
    quantize_blocks(const T* x, std::int64_t rows, std::int64_t columns, std::int64_t block,
                    std::int64_t blocks, bool packed, signed char* q, float* scales) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const std::int64_t warps = static_cast<std::int64_t>(gridDim.x) * kWarps;
  std::int64_t index = static_cast<std::int64_t>(blockIdx.x) * kWarps + threadIdx.x / 32;
  for (; index < rows * blocks; index += warps) {
    const std::int64_t row = index / blocks, first = index % blocks * block;
    const std::int64_t end = columns - first < block ? columns - first : block;
    const std::int64_t start = row * columns + first, own = lane * kRun, next = own + 32 * kRun;
    const auto left = [&](std::int64_t i) { return end - i < kRun ? end - i : kRun; };
    float held[kRun], more[kRun];
    load_run(x + start + own, left(own), packed, held);
    std::uint32_t bits = largest_bits(held);
    for (std::int64_t i = next; i < end; i += 32 * kRun) {
      load_run(x + start + i, left(i), packed, more);
      bits = MaxOf{}(bits, largest_bits(more));
    }
    const float largest = __uint_as_float(warp_reduce(bits, MaxOf{}));
    const bool finite = largest <= FLT_MAX;
    const float inverse = finite && largest > 0 ? kLargest / largest : 0.0f;
    const bool sends = finite && inverse <= FLT_MAX;  // the largest can be too small to divide by
    put_run(q + start + own, left(own), packed, held, inverse, sends);
    for (std::int64_t i = next; i < end; i += 32 * kRun) {
      load_run(x + start + i, left(i), packed, more);
      put_run(q + start + i, left(i), packed, more, inverse, sends);
    }
    if (lane == 0) scales[index] = finite ? largest / kLargest : INFINITY;
  }
}

template <class Y>
struct DequantizeBody {
  const signed char* q;
  const float* scales;
  Y* y;
  std::int64_t columns, block, blocks;
  bool whole_runs, packed_y;

  __device__ __forceinline__ float scale_of(std::int64_t i) const {
    return scales[i / columns * blocks + i % columns / block];
  }
  __device__ void operator()(std::int64_t first, std::int64_t length) const {
    float values[kRun];
    if (whole_runs) {
      const float scale = scale_of(first);
      const Values run = load_some<kRun>(q + first);
      for (int i = 0; i < kRun; ++i) values[i] = static_cast<float>(run.at[i]) * scale;
    } else {
      for (int i = 0; i < kRun; ++i) {
        values[i] = i < length ? static_cast<float>(q[first + i]) * scale_of(first + i) : 0;
      }
    }
    store_run(y + first, length, packed_y, values);
  }
};

template <class Y>
struct SumBody {
  const signed char* q;
  const float* scales;
  Y* out;
  std::int64_t rows, columns, block, blocks;
  float factor;
  bool accumulate, whole_runs, packed;

  __device__ void operator()(std::int64_t first, std::int64_t length) const {
    float sums[kRun] = {}, before[kRun] = {};
    for (std::int64_t row = 0; row < rows; ++row) add_row(row, first, length, sums);
    if (accumulate) load_run(out + first, length, packed, before);
    for (int i = 0; i < kRun; ++i) {
      sums[i] *= factor;
      if (accumulate) sums[i] = add_rounded(before[i], sums[i]);
    }
    store_run(out + first, length, packed, sums);
  }

  __device__ __forceinline__ void add_row(std::int64_t row, std::int64_t first, std::int64_t length,
                                          float (&sums)[kRun]) const {
    const signed char* source = q + row * columns + first;
    if (whole_runs) {
      const float scale = scales[row * blocks + first / block];
      const Values run = load_some<kRun>(source);
      for (int i = 0; i < kRun; ++i) {
        sums[i] = add_rounded(sums[i], static_cast<float>(run.at[i]) * scale);
      }
      return;
    }
    for (int i = 0; i < length; ++i) {
      const float scale = scales[row * blocks + (first + i) / block];
      sums[i] = add_rounded(sums[i], static_cast<float>(source[i]) * scale);
    }
  }

  // a + b rounded on its own: the product before it is not contracted into it.
  static __device__ __forceinline__ float add_rounded(float a, float b) {
#ifdef __CUDA_ARCH__
    return __fadd_rn(a, b);
#else
    return a + b;
#endif
  }
};

template <class F>
void with_narrow_type(DType dtype, const char* op, F&& f) {
  with_float_type(dtype, op, [&](auto type) {
    if constexpr (std::is_same_v<decltype(type), double>) {
      throw Error(ErrorCode::failed, std::string(op) + ": f64 is not quantized");
    } else {
      f(type);
    }
  });
}

}  // namespace

void execute(const BlockQuantize& op, const ExecContext& context) {
  const std::int64_t blocks = op.scales.columns(), all = op.q.rows() * blocks;
  if (all == 0) return;
  const std::int64_t most = std::int64_t{32} * context.multiprocessors;
  const std::int64_t grid = std::min(blocks_for(all, kWarps), most);
  const bool packed = aligned_16(op.x.data) && has_whole_runs(op.q, op.block);
  with_narrow_type(op.x.dtype, op.kName, [&](auto type) {
    using T = decltype(type);
    launch(context.stream, {grid, 1, kThreads, 0}, quantize_blocks<T>, op.x.as<T>(), op.q.rows(),
           op.q.columns(), op.block, blocks, packed, op.q.as<signed char>(), op.scales.as<float>());
  });
}

void execute(const BlockDequantize& op, const ExecContext& context) {
  with_narrow_type(op.y.dtype, op.kName, [&](auto type) {
    using Y = decltype(type);
    launch_runs(context, op.q.count(),
                DequantizeBody<Y>{op.q.as<signed char>(), op.scales.as<float>(), op.y.as<Y>(),
                                  op.q.columns(), op.block, op.scales.columns(),
                                  has_whole_runs(op.q, op.block), aligned_16(op.y.data)});
  });
}

void execute(const BlockSum& op, const ExecContext& context) {
  with_narrow_type(op.out.dtype, op.kName, [&](auto type) {
    using Y = decltype(type);
    launch_runs(context, op.q.columns(),
                SumBody<Y>{op.q.as<signed char>(), op.scales.as<float>(), op.out.as<Y>(),
                           op.q.rows(), op.q.columns(), op.block, op.scales.columns(), op.factor,
                           op.accumulate, has_whole_runs(op.q, op.block), aligned_16(op.out.data)});
  });
}

}  // namespace zl::cuda
