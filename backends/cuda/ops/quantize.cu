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

// Infinity for infinity and NaN.
__device__ __forceinline__ float magnitude(float value) {
  const float size = ::fabsf(value);
  return size <= FLT_MAX ? size : INFINITY;
}

template <class T>
__global__ void __launch_bounds__(kThreads)
    quantize_blocks(const T* x, std::int64_t rows, std::int64_t columns, std::int64_t block,
                    std::int64_t blocks, signed char* q, float* scales) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const std::int64_t warps = static_cast<std::int64_t>(gridDim.x) * kWarps;
  std::int64_t index = static_cast<std::int64_t>(blockIdx.x) * kWarps + threadIdx.x / 32;
  for (; index < rows * blocks; index += warps) {
    const std::int64_t row = index / blocks, first = index % blocks * block;
    const std::int64_t length = columns - first < block ? columns - first : block;
    const T* source = x + row * columns + first;
    float largest = 0;
    for (std::int64_t i = lane; i < length; i += 32) {
      largest = MaxOf{}(largest, magnitude(static_cast<float>(load_value(source[i]))));
    }
    largest = warp_reduce(largest, MaxOf{});
    const bool finite = largest <= FLT_MAX;
    const float inverse = finite && largest > 0 ? kLargest / largest : 0.0f;
    for (std::int64_t i = lane; i < length; i += 32) {
      const auto value = static_cast<float>(load_value(source[i]));
      q[row * columns + first + i] =
          finite ? static_cast<signed char>(::rintf(value * inverse)) : 0;
    }
    if (lane == 0) scales[index] = finite ? largest / kLargest : INFINITY;
  }
}

using Values = Packed<signed char, kRun>;

// Whether the elements of a run are neighbours in one block, and can be read at once.
bool has_whole_runs(const TensorView& q, std::int64_t block) {
  return reinterpret_cast<std::uintptr_t>(q.data) % kRun == 0 && q.columns() % kRun == 0 &&
         block % kRun == 0;
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
  const std::int64_t most = std::int64_t{8} * context.multiprocessors;
  const std::int64_t grid = std::min(blocks_for(all, kWarps), most);
  with_narrow_type(op.x.dtype, op.kName, [&](auto type) {
    using T = decltype(type);
    launch(context.stream, {grid, 1, kThreads, 0}, quantize_blocks<T>, op.x.as<T>(), op.q.rows(),
           op.q.columns(), op.block, blocks, op.q.as<signed char>(), op.scales.as<float>());
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
