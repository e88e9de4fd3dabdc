// The fused classifier, a block per row, and the sum of losses.
#include <math.h>

#include <algorithm>
#include <numbers>

#include "backends/cuda/kernel/launch.h"
#include "backends/cuda/kernel/packed.h"
#include "backends/cuda/kernel/power_of_2.h"
#include "backends/cuda/kernel/reduce.h"
#include "backends/cuda/ops/ops.h"
#include "core/ops/loss.h"

namespace zl::cuda {
namespace {

constexpr int kSumThreads = 512;
constexpr int kThreads = 768, kBlocks = 2;  // a multiprocessor's: their rows stay in its cache
constexpr int kAhead = 2;                   // packs under way in a thread

// 2^shift, at least the largest e^x seen, and the sum of e^x / 2^shift. Milakov & Gimelshein,
// "Online normalizer calculation for softmax" (2018): one pass. The first shift is finite so that
// logits of -infinity give 0.
template <class A>
struct OnlineSum {
  A shift = static_cast<A>(-1e30), sum = 0;

  template <int kCount>
  __device__ __forceinline__ void add(const A (&values)[kCount]) {
    A highest = values[0];
#pragma unroll
    for (int i = 1; i < kCount; ++i) highest = fmax(highest, values[i]);
    if (highest * kLog2E < A >> shift) {
      sum *= power_of_2(shift - highest * kLog2E<A>);
      shift = highest * kLog2E<A>;
    }
#pragma unroll
    for (int i = 0; i < kCount; ++i) sum += power_of_2(fma(values[i], kLog2E<A>, -shift));
  }
  // Over the block.
  __device__ __forceinline__ void combine(A* scratch) {
    const A all = block_reduce(shift, scratch, MaxOf{});
    sum = block_reduce(sum * power_of_2(shift - all), scratch, AddOf{});
    shift = all;
  }
};

template <class T>
struct Arguments {
  T* logits;
  const std::int32_t* targets;
  Math<T>* losses;
  std::int64_t width, vocab, packs;  // whole packs below vocab, 0 where rows are not aligned
  Math<T> scale;
  bool write_gradient;
};

template <class T>
__device__ __forceinline__ OnlineSum<Math<T>> sum_of_row(const Arguments<T>& a, const T* row) {
  using A = Math<T>;
  OnlineSum<A> online;
  for_packs<kAhead>(row, a.packs, threadIdx.x, blockDim.x,
                    [&](std::int64_t, const Packed<T>& pack) {
                      A values[kPack<T>];
#pragma unroll
                      for (int i = 0; i < kPack<T>; ++i) values[i] = load_value(pack.at[i]);
                      online.add(values);
                    });
  for (std::int64_t i = a.packs * kPack<T> + threadIdx.x; i < a.vocab; i += blockDim.x) {
    const A value[1] = {load_value(row[i])};
    online.add(value);
  }
  return online;
}

// logits = scale (softmax - onehot), with factor = scale / sum. score: the logit of the target,
// whose place the thread that wrote it writes once more: a comparison a pack and not one an
// element.
template <class T>
__device__ __forceinline__ void store_gradient(const Arguments<T>& a, T* row, std::int64_t target,
                                               Math<T> score, Math<T> shift, Math<T> factor) {
  using A = Math<T>;
  const auto share = [&](A logit) { return factor * power_of_2(fma(logit, kLog2E<A>, -shift)); };
  bool wrote_target = false;
  for_packs<kAhead>(row, a.packs, threadIdx.x, blockDim.x, [&](std::int64_t index, Packed<T> pack) {
#pragma unroll
    for (int i = 0; i < kPack<T>; ++i) {
      pack.at[i] = store_value<T>(share(load_value(pack.at[i])));
    }
    store_packed_streaming(row + index * kPack<T>, pack);
    wrote_target |= index == target / kPack<T>;
  });
  for (std::int64_t i = a.packs * kPack<T> + threadIdx.x; i < a.width; i += blockDim.x) {
    row[i] = store_value<T>(i < a.vocab ? share(load_value(row[i])) : A{0});
    wrote_target |= i == target;
  }
  if (wrote_target && target < a.vocab) row[target] = store_value<T>(share(score) - a.scale);
}

template <class T>
__device__ __forceinline__ void clear_row(const Arguments<T>& a, T* row) {
  for (std::int64_t i = threadIdx.x; i < a.packs; i += blockDim.x) {
    store_packed_streaming(row + i * kPack<T>, Packed<T>{});  // 0 is 0 in every type
  }
  for (std::int64_t i = a.packs * kPack<T> + threadIdx.x; i < a.width; i += blockDim.x) {
    row[i] = store_value<T>(Math<T>{0});
  }
}

template <class T>
__global__ void __launch_bounds__(kThreads, sizeof(T) == 8 ? 1 : kBlocks) classify(Arguments<T> a) {
  using A = Math<T>;
  __shared__ A scratch[32];
  T* row = a.logits + std::int64_t{blockIdx.x} * a.width;
  const std::int64_t target = a.targets[blockIdx.x];
  if (target < 0) {
    if (threadIdx.x == 0) a.losses[blockIdx.x] = 0;
    if (a.write_gradient) clear_row(a, row);
    return;
  }
  // Read before its place is overwritten: barriers lie between.
  const A score = target < a.vocab ? load_value(row[target]) : A{NAN};
  OnlineSum<A> online = sum_of_row(a, row);
  online.combine(scratch);
  if (threadIdx.x == 0) {
    constexpr A kLn2 = std::numbers::ln2_v<A>;
    a.losses[blockIdx.x] = fma(-score, kLog2E<A>, online.shift) * kLn2 + log(online.sum);
  }
  if (a.write_gradient) store_gradient(a, row, target, score, online.shift, a.scale / online.sum);
}

template <class T, class O>
__global__ void __launch_bounds__(kSumThreads)
    sum_all(const T* x, std::int64_t count, double scale, bool accumulate, O* out) {
  __shared__ double scratch[32];
  double sum = 0;
#pragma unroll 8
  for (std::int64_t i = threadIdx.x; i < count; i += kSumThreads) {
    sum += static_cast<double>(load_value(x[i]));
  }
  sum = scale * block_reduce(sum, scratch, AddOf{});
  if (threadIdx.x != 0) return;
  if (accumulate) sum += static_cast<double>(load_value(*out));
  *out = store_value<O>(sum);
}

}  // namespace

void execute(const CrossEntropy& op, const ExecContext& context) {
  const std::int64_t rows = op.logits.rows(), width = op.logits.columns();
  if (rows == 0) return;
  with_float_type(op.logits.dtype, op.kName, [&](auto type) {
    using T = decltype(type);
    const bool packed = aligned_16(op.logits.data) && width % kPack<T> == 0;
    const Arguments<T> arguments{op.logits.as<T>(),
                                 op.targets.as<std::int32_t>(),
                                 op.losses.as<Math<T>>(),
                                 width,
                                 op.vocab,
                                 packed ? op.vocab / kPack<T> : 0,
                                 static_cast<Math<T>>(op.grad_scale),
                                 op.write_gradient};
    const auto block =
        std::clamp<std::int64_t>(blocks_for(width, 32 * kPack<T>) * 32, 32, kThreads);
    launch(context.stream, {rows, 1, static_cast<int>(block), 0}, classify<T>, arguments);
  });
}

// In a fixed order; not the CPU's, and in f64 the difference is far below an f32's last bit.
void execute(const Sum& op, const ExecContext& context) {
  with_two_types(op.x.dtype, op.out.dtype, op.kName, [&](auto x, auto out, auto) {
    using T = decltype(x);
    using O = decltype(out);
    launch(context.stream, {1, 1, kSumThreads, 0}, sum_all<T, O>, op.x.as<T>(), op.x.count(),
           op.scale, op.accumulate, op.out.as<O>());
  });
}

}  // namespace zl::cuda
