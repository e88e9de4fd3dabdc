// RMSNorm of query and key heads: a warp per head, its elements over the lanes. The backward's
// warps take heads in turn and keep their shares of the weights' gradients in registers; a second
// kernel adds the shares in order.
#include <math.h>

#include <algorithm>

#include "backends/cuda/kernel/column_sum.h"
#include "backends/cuda/kernel/reduce.h"
#include "core/ops/head_norm.h"

namespace zl::cuda {
namespace {

constexpr int kThreads = 128, kWarps = kThreads / 32, kBlocksPerMultiprocessor = 16;
constexpr int kLaneElements = 8, kMostElements = 32 * kLaneElements;

// Which heads of how many rows: query heads, then key heads, in rows of qkv and of x.
struct HeadRows {
  std::int64_t rows, queries, all, size, qkv_width;

  explicit HeadRows(const AttentionShape& shape)
      : rows(shape.rows()),
        queries(shape.heads),
        all(shape.heads + shape.kv_heads),
        size(shape.head_size),
        qkv_width(shape.qkv_width()) {}
  __device__ __forceinline__ std::int64_t in_qkv(std::int64_t row, std::int64_t head) const {
    return row * qkv_width + head * size;
  }
  __device__ __forceinline__ std::int64_t in_x(std::int64_t row, std::int64_t head) const {
    return (row * all + head) * size;
  }
};

__device__ __forceinline__ std::int64_t own_warp() {
  return std::int64_t{blockIdx.x} * kWarps + threadIdx.x / 32;
}

template <class T>
__global__ void __launch_bounds__(kThreads)
    normalise_heads(HeadRows heads, T* qkv, T* x, const T* q_weight, const T* k_weight,
                    Math<T>* rstd_of, Math<T> epsilon, Math<T> weight_offset) {
  using A = Math<T>;
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const std::int64_t count = heads.rows * heads.all, warps = std::int64_t{gridDim.x} * kWarps;
  for (std::int64_t item = own_warp(); item < count; item += warps) {
    const std::int64_t row = item / heads.all, head = item % heads.all;
    T* out = qkv + heads.in_qkv(row, head);
    T* kept = x + heads.in_x(row, head);
    const T* weight = head < heads.queries ? q_weight : k_weight;
    A values[kLaneElements] = {}, square = 0;
#pragma unroll
    for (int i = 0; i < kLaneElements; ++i) {
      const int c = lane + 32 * i;
      if (c >= heads.size) continue;
      kept[c] = out[c];
      values[i] = load_value(out[c]);
      square += values[i] * values[i];
    }
    square = warp_reduce(square, AddOf{});
    const A rstd = A{1} / sqrt(square / static_cast<A>(heads.size) + epsilon);
    if (lane == 0) rstd_of[item] = rstd;
#pragma unroll
    for (int i = 0; i < kLaneElements; ++i) {
      const int c = lane + 32 * i;
      if (c >= heads.size) continue;
      const A scale = weight_offset + load_value(weight[c]);
      out[c] = store_value<T>(values[i] * rstd * scale);
    }
  }
}

// dx of the heads [first, first + count) of every row; share[D] of this warp.
template <class T>
__device__ __forceinline__ void differentiate(const HeadRows& heads, std::int64_t first,
                                              std::int64_t count, T* dqkv, const T* x,
                                              const T* weight, const Math<T>* rstd_of,
                                              Math<T> weight_offset, Math<T>* share) {
  using A = Math<T>;
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const std::int64_t warps = std::int64_t{gridDim.x} * kWarps;
  A shares[kLaneElements] = {};
  for (std::int64_t item = own_warp(); item < heads.rows * count; item += warps) {
    const std::int64_t row = item / count, head = first + item % count;
    T* d = dqkv + heads.in_qkv(row, head);
    const T* kept = x + heads.in_x(row, head);
    const A rstd = rstd_of[row * heads.all + head];
    A xhat[kLaneElements] = {}, g[kLaneElements] = {}, along = 0;
#pragma unroll
    for (int i = 0; i < kLaneElements; ++i) {
      const int c = lane + 32 * i;
      if (c >= heads.size) continue;
      const A gradient = load_value(d[c]);
      xhat[i] = load_value(kept[c]) * rstd;
      g[i] = gradient * (weight_offset + load_value(weight[c]));
      shares[i] += gradient * xhat[i];
      along += g[i] * xhat[i];
    }
    along = warp_reduce(along, AddOf{}) / static_cast<A>(heads.size);
#pragma unroll
    for (int i = 0; i < kLaneElements; ++i) {
      const int c = lane + 32 * i;
      if (c < heads.size) d[c] = store_value<T>(rstd * (g[i] - xhat[i] * along));
    }
  }
#pragma unroll
  for (int i = 0; i < kLaneElements; ++i) {
    const int c = lane + 32 * i;
    if (c < heads.size) share[c] = shares[i];
  }
}

// partials[warps][2 D]: shares of the query heads' weight, then of the key heads'.
template <class T>
__global__ void __launch_bounds__(kThreads)
    differentiate_heads(HeadRows heads, T* dqkv, const T* x, const T* q_weight, const T* k_weight,
                        const Math<T>* rstd, Math<T> weight_offset, Math<T>* partials) {
  Math<T>* share = partials + own_warp() * 2 * heads.size;
  differentiate<T>(heads, 0, heads.queries, dqkv, x, q_weight, rstd, weight_offset, share);
  differentiate<T>(heads, heads.queries, heads.all - heads.queries, dqkv, x, k_weight, rstd,
                   weight_offset, share + heads.size);
}

void require_size(const AttentionShape& shape, const char* op) {
  require(shape.head_size <= kMostElements, op, "head_size is at most 256");
}

template <class T, class G>
void run(const HeadNormBackward& op, const ExecContext& context) {
  using A = Math<T>;
  const HeadRows heads(op.shape);
  auto* partials = reinterpret_cast<A*>(context.workspace);
  const std::int64_t warp_bytes = 2 * heads.size * static_cast<std::int64_t>(sizeof(A));
  const std::int64_t most =
      std::min(workspace_rows(context, kWarps * warp_bytes, op.kName),
               std::int64_t{kBlocksPerMultiprocessor} * context.multiprocessors);
  const std::int64_t blocks =
      std::clamp<std::int64_t>(blocks_for(heads.rows * heads.queries, kWarps), 1, most);
  launch(context.stream, {blocks, 1, kThreads, 0}, differentiate_heads<T>, heads, op.dqkv.as<T>(),
         op.x.as<T>(), op.q_weight.as<T>(), op.k_weight.as<T>(), op.rstd.as<A>(),
         static_cast<A>(op.weight_offset), partials);
  launch_column_sums(context, partials, blocks * kWarps, 2 * heads.size, heads.size, op.accumulate,
                     op.dq_weight.as<G>(), op.dk_weight.as<G>());
}

}  // namespace

void execute(const HeadNormForward& op, const ExecContext& context) {
  require_size(op.shape, op.kName);
  if (op.x.count() == 0) return;
  with_float_type(op.qkv.dtype, op.kName, [&](auto type) {
    using T = decltype(type);
    using A = Math<T>;
    const HeadRows heads(op.shape);
    const std::int64_t most = std::int64_t{kBlocksPerMultiprocessor} * context.multiprocessors;
    const std::int64_t blocks = std::min(blocks_for(heads.rows * heads.all, kWarps), most);
    launch(context.stream, {blocks, 1, kThreads, 0}, normalise_heads<T>, heads, op.qkv.as<T>(),
           op.x.as<T>(), op.q_weight.as<T>(), op.k_weight.as<T>(), op.rstd.as<A>(),
           static_cast<A>(op.epsilon), static_cast<A>(op.weight_offset));
  });
}

void execute(const HeadNormBackward& op, const ExecContext& context) {
  require_size(op.shape, op.kName);
  if (op.dq_weight.count() == 0) return;
  with_gradient_type(op.dqkv.dtype, op.dq_weight.dtype, op.kName, [&](auto type, auto gradient) {
    run<decltype(type), decltype(gradient)>(op, context);
  });
}

}  // namespace zl::cuda
