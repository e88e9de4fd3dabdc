// RMSNorm of query and key heads: a few lanes of a warp per head, eight neighbouring elements a
// lane. The backward's lanes keep their shares of the weights' gradients in registers; blocks add
// theirs up, and a second kernel adds those of the blocks in order.
#include <math.h>

#include <algorithm>

#include "backends/cuda/kernel/column_sum.h"
#include "backends/cuda/kernel/reduce.h"
#include "backends/cuda/kernel/runs.h"
#include "core/ops/head_norm.h"

namespace zl::cuda {
namespace {

constexpr int kThreads = 256, kWarps = kThreads / 32, kMostElements = 32 * kRun;
// Of a multiprocessor: so many that the last wave is short; and as many as have room, for each
// leaves a share.
constexpr int kForwardBlocks = 32, kBackwardBlocks = 3;

// Which heads of how many rows: query heads, then key heads, in rows of qkv and of x.
struct HeadRows {
  std::int64_t rows, queries, all, size, qkv_width;
  int lanes = 1;  // of a head, a power of two
  bool packed;    // heads are whole runs that can be read at once

  HeadRows(const AttentionShape& shape, bool aligned)
      : rows(shape.rows()),
        queries(shape.heads),
        all(shape.heads + shape.kv_heads),
        size(shape.head_size),
        qkv_width(shape.qkv_width()),
        packed(aligned && size % kRun == 0) {
    while (lanes * kRun < size) lanes *= 2;
  }
  std::int64_t blocks_of(std::int64_t heads) const { return blocks_for(heads * lanes, kThreads); }
  __device__ __forceinline__ std::int64_t in_qkv(std::int64_t row, std::int64_t head) const {
    return row * qkv_width + head * size;
  }
  __device__ __forceinline__ std::int64_t in_x(std::int64_t row, std::int64_t head) const {
    return (row * all + head) * size;
  }
};

// A thread's part of every head that its lanes take.
struct Part {
  int column, length;
  int place;                // of its head among those of the warp
  std::int64_t item, step;  // the first of its heads, and how many on the next one is

  __device__ explicit Part(const HeadRows& heads)
      : column(static_cast<int>(threadIdx.x) % heads.lanes * kRun),
        length(heads.size - column < kRun ? static_cast<int>(heads.size) - column : kRun),
        place(static_cast<int>(threadIdx.x) % 32 / heads.lanes),
        item(std::int64_t{blockIdx.x} * (kThreads / heads.lanes) +
             static_cast<int>(threadIdx.x) / heads.lanes),
        step(std::int64_t{gridDim.x} * (kThreads / heads.lanes)) {}
  // f(item, length) for its heads below `count`; with length 0 where only others of the warp, with
  // which it exchanges, have one.
  template <class F>
  __device__ __forceinline__ void for_items(std::int64_t count, F&& f) const {
    for (std::int64_t i = item; i - place < count; i += step) f(i, i < count ? length : 0);
  }
};

template <class T>
__global__ void __launch_bounds__(kThreads)
    normalise_heads(HeadRows heads, T* qkv, T* x, const T* q_weight, const T* k_weight,
                    Math<T>* rstd_of, Math<T> epsilon, Math<T> weight_offset) {
  using A = Math<T>;
  const Part part(heads);
  part.for_items(heads.rows * heads.all, [&](std::int64_t item, int length) {
    const std::int64_t row = item / heads.all, head = item % heads.all;
    T* out = qkv + heads.in_qkv(row, head) + part.column;
    A values[kRun], weight[kRun], square = 0;
    load_run(out, length, heads.packed, values);
    load_run((head < heads.queries ? q_weight : k_weight) + part.column, length, heads.packed,
             weight);
    store_run(x + heads.in_x(row, head) + part.column, length, heads.packed, values);
#pragma unroll
    for (int i = 0; i < kRun; ++i) square += values[i] * values[i];
    square = lanes_reduce(square, heads.lanes, AddOf{});
    const A rstd = A{1} / sqrt(square / static_cast<A>(heads.size) + epsilon);
    if (part.column == 0 && length > 0) rstd_of[item] = rstd;
#pragma unroll
    for (int i = 0; i < kRun; ++i) values[i] = values[i] * rstd * (weight_offset + weight[i]);
    store_run(out, length, heads.packed, values);
  });
}

// share[D] = the block's sum of what its threads have of their columns.
template <class A>
__device__ __forceinline__ void put_share(const HeadRows& heads, const Part& part,
                                          A (&shares)[kRun], A* share) {
  __shared__ A of_warp[kWarps][kMostElements];
  __syncthreads();  // the shares before have been read
#pragma unroll
  for (int i = 0; i < kRun; ++i) {
    for (int offset = heads.lanes; offset < 32; offset *= 2) {
      shares[i] += shuffle_xor(shares[i], offset);
    }
    if (part.place == 0 && i < part.length) of_warp[threadIdx.x / 32][part.column + i] = shares[i];
  }
  __syncthreads();
  for (int c = static_cast<int>(threadIdx.x); c < heads.size; c += kThreads) {
    A sum = of_warp[0][c];
    for (int warp = 1; warp < kWarps; ++warp) sum += of_warp[warp][c];
    share[c] = sum;
  }
}

// dx of the heads [first, first + count) of every row; share[D] of this block.
template <class T>
__device__ __forceinline__ void differentiate(const HeadRows& heads, std::int64_t first,
                                              std::int64_t count, T* dqkv, const T* x,
                                              const T* weight, const Math<T>* rstd_of,
                                              Math<T> weight_offset, Math<T>* share) {
  using A = Math<T>;
  const Part part(heads);
  A scale[kRun], shares[kRun] = {};
  load_run(weight + part.column, part.length, heads.packed, scale);
#pragma unroll
  for (int i = 0; i < kRun; ++i) scale[i] += weight_offset;
  part.for_items(heads.rows * count, [&](std::int64_t item, int length) {
    const std::int64_t row = item / count, head = first + item % count;
    T* d = dqkv + heads.in_qkv(row, head) + part.column;
    A g[kRun], xhat[kRun], along = 0;
    load_run(d, length, heads.packed, g);
    load_run(x + heads.in_x(row, head) + part.column, length, heads.packed, xhat);
    const A rstd = length > 0 ? rstd_of[row * heads.all + head] : A{0};
#pragma unroll
    for (int i = 0; i < kRun; ++i) {
      xhat[i] *= rstd;
      shares[i] += g[i] * xhat[i];
      g[i] *= scale[i];
      along += g[i] * xhat[i];
    }
    along = lanes_reduce(along, heads.lanes, AddOf{}) / static_cast<A>(heads.size);
#pragma unroll
    for (int i = 0; i < kRun; ++i) g[i] = rstd * (g[i] - xhat[i] * along);
    store_run(d, length, heads.packed, g);
  });
  put_share(heads, part, shares, share);
}

// partials[blocks][2 D]: shares of the query heads' weight, then of the key heads'.
template <class T>
__global__ void __launch_bounds__(kThreads, sizeof(T) == 8 ? 1 : kBackwardBlocks)
    differentiate_heads(HeadRows heads, T* dqkv, const T* x, const T* q_weight, const T* k_weight,
                        const Math<T>* rstd, Math<T> weight_offset, Math<T>* partials) {
  Math<T>* share = partials + std::int64_t{blockIdx.x} * 2 * heads.size;
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
  const HeadRows heads(op.shape,
                       aligned_16(op.dqkv.data, op.x.data, op.q_weight.data, op.k_weight.data));
  auto* partials = reinterpret_cast<A*>(context.workspace);
  const std::int64_t share_bytes = 2 * heads.size * static_cast<std::int64_t>(sizeof(A));
  const std::int64_t most = std::min(workspace_rows(context, share_bytes, op.kName),
                                     std::int64_t{kBackwardBlocks} * context.multiprocessors);
  const std::int64_t blocks =
      std::clamp<std::int64_t>(heads.blocks_of(heads.rows * heads.queries), 1, most);
  launch(context.stream, {blocks, 1, kThreads, 0}, differentiate_heads<T>, heads, op.dqkv.as<T>(),
         op.x.as<T>(), op.q_weight.as<T>(), op.k_weight.as<T>(), op.rstd.as<A>(),
         static_cast<A>(op.weight_offset), partials);
  launch_column_sums(context, partials, blocks, 2 * heads.size, heads.size, op.accumulate,
                     op.dq_weight.as<G>(), op.dk_weight.as<G>());
}

}  // namespace

void execute(const HeadNormForward& op, const ExecContext& context) {
  require_size(op.shape, op.kName);
  if (op.x.count() == 0) return;
  const HeadRows heads(op.shape,
                       aligned_16(op.qkv.data, op.x.data, op.q_weight.data, op.k_weight.data));
  const std::int64_t most = std::int64_t{kForwardBlocks} * context.multiprocessors;
  const std::int64_t blocks = std::min(heads.blocks_of(heads.rows * heads.all), most);
  with_float_type(op.qkv.dtype, op.kName, [&](auto type) {
    using T = decltype(type);
    using A = Math<T>;
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
