// Rotary positions in the half-split layout: a block per row, its angles in shared memory.
#include <math.h>

#include "backends/cuda/kernel/launch.h"
#include "backends/cuda/kernel/packed.h"
#include "backends/cuda/ops/ops.h"
#include "core/ops/attention.h"

namespace zl::cuda {
namespace {

constexpr int kThreads = 128, kMostPairs = 256;

// The table as a kernel's argument.
struct Angles {
  double frequencies[kMostPairs];
  double multiplier;
};

Angles angles_of(const RopeTable& table) {
  Angles angles{};
  for (std::size_t j = 0; j < table.frequencies.size(); ++j) {
    angles.frequencies[j] = table.frequencies[j];
  }
  angles.multiplier = table.multiplier;
  return angles;
}

// Rotates the pairs (j, j + half) of one head, kWidth neighbouring pairs.
template <class T, int kWidth>
__device__ __forceinline__ void rotate(T* low, std::int64_t half, const Math<T>* cosine,
                                       const Math<T>* sine) {
  if constexpr (kWidth == 1) {
    const Math<T> x = load_value(low[0]), y = load_value(low[half]);
    low[0] = store_value<T>(x * cosine[0] - y * sine[0]);
    low[half] = store_value<T>(y * cosine[0] + x * sine[0]);
  } else {
    Packed<T> lows = load_packed(low), highs = load_packed(low + half);
#pragma unroll
    for (int i = 0; i < kWidth; ++i) {
      const Math<T> x = load_value(lows.at[i]), y = load_value(highs.at[i]);
      lows.at[i] = store_value<T>(x * cosine[i] - y * sine[i]);
      highs.at[i] = store_value<T>(y * cosine[i] + x * sine[i]);
    }
    store_packed(low, lows);
    store_packed(low + half, highs);
  }
}

template <class T, int kWidth>
__global__ void __launch_bounds__(kThreads)
    rotate_rows(T* qkv, std::int64_t rows, std::int64_t sequence, std::int64_t first_position,
                std::int64_t row_width, std::int64_t heads, std::int64_t head_size,
                std::int64_t half, bool inverse, Angles angles) {
  using A = Math<T>;
  A* cosine = dynamic_shared<A>();
  A* sine = cosine + half;
  for (std::int64_t row = blockIdx.x; row < rows; row += gridDim.x) {
    const auto position = static_cast<double>(first_position + row % sequence);
    __syncthreads();  // the row before may still read the angles
    for (std::int64_t j = threadIdx.x; j < half; j += kThreads) {
      const double angle = position * angles.frequencies[j];
      cosine[j] = static_cast<A>(angles.multiplier * ::cos(angle));
      sine[j] = static_cast<A>(angles.multiplier * (inverse ? -::sin(angle) : ::sin(angle)));
    }
    __syncthreads();
    const std::int64_t groups = half / kWidth;
    for (std::int64_t i = threadIdx.x; i < heads * groups; i += kThreads) {
      const std::int64_t head = i / groups, j = i % groups * kWidth;
      rotate<T, kWidth>(qkv + row * row_width + head * head_size + j, half, cosine + j, sine + j);
    }
  }
}

}  // namespace

void execute(const Rope& op, const ExecContext& context) {
  const AttentionShape& shape = op.shape;
  const std::int64_t rows = shape.rows(), half = op.table->width() / 2;
  if (rows == 0 || half == 0) return;
  require(half <= kMostPairs, op.kName, "at most 512 elements of a head are turned");
  with_float_type(op.qkv.dtype, op.kName, [&](auto type) {
    using T = decltype(type);
    const bool packed =
        aligned_16(op.qkv.data) && half % kPack<T> == 0 && shape.head_size % kPack<T> == 0;
    const std::int64_t most = std::int64_t{16} * context.multiprocessors;
    const LaunchShape grid{rows < most ? rows : most, 1, kThreads,
                           2 * half * static_cast<std::int64_t>(sizeof(Math<T>))};
    launch(context.stream, grid, packed ? rotate_rows<T, kPack<T>> : rotate_rows<T, 1>,
           op.qkv.as<T>(), rows, shape.sequence, shape.first_position, shape.qkv_width(),
           shape.heads + shape.kv_heads, shape.head_size, half, op.inverse, angles_of(*op.table));
  });
}

}  // namespace zl::cuda
