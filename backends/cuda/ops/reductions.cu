// The sum of a tensor, and the exact reductions behind clipping, overflow detection and LAMB:
// maxima and exact sums, the same for any order, so that every result is the CPU's, bit for bit,
// for any split of a flat range.
#include <float.h>
#include <math.h>

#include <algorithm>
#include <bit>

#include "backends/cuda/kernel/column_sum.h"
#include "backends/cuda/kernel/reduce.h"
#include "core/ops/loss.h"
#include "core/ops/optimizer.h"

namespace zl::cuda {
namespace {

constexpr int kThreads = 256, kBlocksPerMultiprocessor = 4, kAhead = 4;

std::int64_t reduce_blocks(const ExecContext& context, std::int64_t count, std::int64_t bytes,
                           const char* op) {
  const std::int64_t most =
      std::min(std::int64_t{kBlocksPerMultiprocessor} * context.multiprocessors,
               workspace_rows(context, bytes, op));
  return std::clamp<std::int64_t>(blocks_for(count, kThreads * 16), 1, most);
}

// f(value) for the elements of x that are this thread's, in packs where they are aligned.
template <class T, class F>
__device__ __forceinline__ void for_my_elements(const T* x, std::int64_t count, bool packed,
                                                F&& f) {
  const std::int64_t mine = std::int64_t{blockIdx.x} * kThreads + threadIdx.x;
  const std::int64_t threads = std::int64_t{gridDim.x} * kThreads;
  const std::int64_t packs = packed ? count / kPack<T> : 0;
  for_packs<kAhead>(x, packs, mine, threads, [&](std::int64_t, const Packed<T>& pack) {
#pragma unroll
    for (int i = 0; i < kPack<T>; ++i) f(load_value(pack.at[i]));
  });
  for (std::int64_t i = packs * kPack<T> + mine; i < count; i += threads) f(load_value(x[i]));
}

// A part of the sum for each block, or all of it in one.
template <class T, class O>
__global__ void __launch_bounds__(kThreads)
    sum_parts(const T* x, std::int64_t count, bool packed, double scale, bool accumulate, O* out) {
  __shared__ double scratch[32];
  double sum = 0;
  for_my_elements(x, count, packed, [&](Math<T> value) { sum += static_cast<double>(value); });
  sum = scale * block_reduce(sum, scratch, AddOf{});
  if (threadIdx.x != 0) return;
  if (accumulate) sum += static_cast<double>(load_value(out[blockIdx.x]));
  out[blockIdx.x] = store_value<O>(sum);
}

template <class T, class O>
void launch_sum(const ExecContext& context, std::int64_t blocks, const T* x, std::int64_t count,
                double scale, bool accumulate, O* out) {
  launch(context.stream, {blocks, 1, kThreads, 0}, sum_parts<T, O>, x, count, aligned_16(x), scale,
         accumulate, out);
}

// |value| as f32, not below it; infinity for inf and NaN.
__device__ __forceinline__ float magnitude(double value) {
  const double size = ::fabs(value);
  if (!(size <= static_cast<double>(FLT_MAX))) return INFINITY;
  const auto rounded = static_cast<float>(size);
  return static_cast<double>(rounded) < size ? ::nextafterf(rounded, INFINITY) : rounded;
}
__device__ __forceinline__ float magnitude(float value) {
  const float size = ::fabsf(value);
  return size <= FLT_MAX ? size : INFINITY;
}

template <class T>
__global__ void __launch_bounds__(kThreads)
    largest_parts(const T* x, std::int64_t count, bool packed, float* parts) {
  __shared__ float scratch[32];
  float largest = 0;
  for_my_elements(x, count, packed,
                  [&](Math<T> value) { largest = MaxOf{}(largest, magnitude(value)); });
  largest = block_reduce(largest, scratch, MaxOf{});
  if (threadIdx.x == 0) parts[blockIdx.x] = largest;
}

__global__ void __launch_bounds__(kThreads)
    largest_of(const float* parts, std::int64_t count, bool accumulate, float* out) {
  __shared__ float scratch[32];
  float largest = 0;
  for (std::int64_t i = threadIdx.x; i < count; i += kThreads) {
    largest = MaxOf{}(largest, parts[i]);
  }
  largest = block_reduce(largest, scratch, MaxOf{});
  if (threadIdx.x != 0) return;
  *out = accumulate ? MaxOf{}(largest, magnitude(*out)) : largest;
}

// The two rounding levels of SquaredSum: adding and subtracting `coarse` (`fine`) rounds to a
// multiple of q1 (q2).
struct RoundingLevels {
  double coarse, fine;
};

__device__ __forceinline__ RoundingLevels rounding_levels(float bound, double count) {
  const double square = static_cast<double>(bound) * static_cast<double>(bound);
  int exponent = 0;
  const double mantissa = ::frexp(square, &exponent);
  const double top = ::ldexp(1.0, mantissa == 0.5 ? exponent - 1 : exponent);
  // Squares are not negative, so q1 * 2^52 keeps them in one binade; remainders have a sign.
  return {count * top, 1.5 * count * (count * top * 0x1p-52)};
}

template <class T>
__global__ void __launch_bounds__(kThreads)
    square_parts(const T* x, std::int64_t count, bool packed, const float* bound,
                 double total_count, double* parts) {
  __shared__ double scratch[32];
  const RoundingLevels levels = rounding_levels(*bound, total_count);
  double coarse = 0, fine = 0;
  for_my_elements(x, count, packed, [&](Math<T> value) {
    const double square = rounded_product(value, value);
    const double part = (square + levels.coarse) - levels.coarse;
    coarse += part;
    fine += ((square - part) + levels.fine) - levels.fine;
  });
  coarse = block_reduce(coarse, scratch, AddOf{});
  fine = block_reduce(fine, scratch, AddOf{});
  if (threadIdx.x != 0) return;
  parts[2 * blockIdx.x] = coarse;
  parts[2 * blockIdx.x + 1] = fine;
}

__global__ void __launch_bounds__(32)
    add_squares(const double* parts, std::int64_t count, const float* bound, bool accumulate,
                double* out) {
  double coarse = 0, fine = 0;
  for (std::int64_t i = threadIdx.x; i < count; i += 32) {
    coarse += parts[2 * i];
    fine += parts[2 * i + 1];
  }
  coarse = warp_reduce(coarse, AddOf{});
  fine = warp_reduce(fine, AddOf{});
  if (!(*bound <= FLT_MAX)) {
    coarse = INFINITY;
    fine = 0;
  } else if (!(*bound > 0)) {
    coarse = fine = 0;
  }
  if (threadIdx.x != 0) return;
  out[0] = (accumulate ? out[0] : 0.0) + coarse;
  out[1] = (accumulate ? out[1] : 0.0) + fine;
}

__global__ void __launch_bounds__(32)
    clip_factor(const double* parts, double gradients, double loss_scale, double unscale,
                double max_norm, double* sum_out, double* factor) {
  if (threadIdx.x != 0) return;
  const double sum = parts[0] + parts[1];
  const double norm = ::sqrt(sum / gradients) / loss_scale;
  const double excess = (norm + 1e-6) / max_norm;
  *sum_out = sum;
  *factor = unscale / (excess > 1.0 ? excess : 1.0);
}

}  // namespace

// In a fixed order; not the CPU's, and in f64 the difference is far below an f32's last bit.
void execute(const Sum& op, const ExecContext& context) {
  const std::int64_t count = op.x.count();
  const std::int64_t blocks = reduce_blocks(context, count, sizeof(double), op.kName);
  auto* parts = reinterpret_cast<double*>(context.workspace);
  with_two_types(op.x.dtype, op.out.dtype, op.kName, [&](auto x, auto o, auto) {
    const auto* from = op.x.as<decltype(x)>();
    auto* out = op.out.as<decltype(o)>();
    if (blocks == 1) return launch_sum(context, 1, from, count, op.scale, op.accumulate, out);
    launch_sum(context, blocks, from, count, 1.0, false, parts);
    launch_sum(context, 1, parts, blocks, op.scale, op.accumulate, out);
  });
}

void execute(const AbsMax& op, const ExecContext& context) {
  const std::int64_t blocks = reduce_blocks(context, op.x.count(), sizeof(float), op.kName);
  auto* parts = reinterpret_cast<float*>(context.workspace);
  with_float_type(op.x.dtype, op.kName, [&](auto type) {
    using T = decltype(type);
    launch(context.stream, {blocks, 1, kThreads, 0}, largest_parts<T>, op.x.as<T>(), op.x.count(),
           aligned_16(op.x.data), parts);
  });
  launch(context.stream, {1, 1, kThreads, 0}, largest_of, parts, blocks, op.accumulate,
         op.out.as<float>());
}

void execute(const SquaredSum& op, const ExecContext& context) {
  const std::int64_t blocks = reduce_blocks(context, op.x.count(), 2 * sizeof(double), op.kName);
  auto* parts = reinterpret_cast<double*>(context.workspace);
  const auto total = static_cast<double>(std::bit_ceil(static_cast<std::uint64_t>(op.total_count)));
  with_float_type(op.x.dtype, op.kName, [&](auto type) {
    using T = decltype(type);
    launch(context.stream, {blocks, 1, kThreads, 0}, square_parts<T>, op.x.as<T>(), op.x.count(),
           aligned_16(op.x.data), op.bound.as<float>(), total, parts);
  });
  launch(context.stream, {1, 1, 32, 0}, add_squares, parts, blocks, op.bound.as<float>(),
         op.accumulate, op.out.as<double>());
}

void execute(const ClipFactor& op, const ExecContext& context) {
  launch(context.stream, {1, 1, 32, 0}, clip_factor, op.parts.as<double>(), op.gradients,
         op.loss_scale, op.unscale, op.max_norm, op.sum.as<double>(), op.factor.as<double>());
}

}  // namespace zl::cuda
