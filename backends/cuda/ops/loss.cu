// The fused classifier, a block per row.
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
  std::int64_t width, vocab, packs;  // whole packs below vocab, 0 where rows are not aligned
  std::int64_t first_token;
  Math<T>* losses = nullptr;
  Math<T>* statistics = nullptr;  // of LogitStatistics; of CrossEntropy, null: of this row alone
  std::int64_t ranks = 0;
  Math<T> scale = 1;
  bool write_gradient = false;
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
    wrote_target |= target >= 0 && index == target / kPack<T>;
  });
  for (std::int64_t i = a.packs * kPack<T> + threadIdx.x; i < a.width; i += blockDim.x) {
    row[i] = store_value<T>(i < a.vocab ? share(load_value(row[i])) : A{0});
    wrote_target |= i == target;
  }
  if (wrote_target && target >= 0 && target < a.vocab)
    row[target] = store_value<T>(share(score) - a.scale);
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

// Of the block's row over all ranks, in their order, and the target's logit.
template <class T>
__device__ __forceinline__ OnlineSum<Math<T>> sum_of_ranks(const Arguments<T>& a, Math<T>& score) {
  using A = Math<T>;
  constexpr std::int64_t kValues = LogitStatistics::kValues;
  const A* row = a.statistics + std::int64_t{blockIdx.x} * kValues;
  const std::int64_t step = std::int64_t{gridDim.x} * kValues;
  OnlineSum<A> all;
  for (std::int64_t r = 0; r < a.ranks; ++r) all.shift = fmax(all.shift, row[r * step] * kLog2E<A>);
  score = 0;
  for (std::int64_t r = 0; r < a.ranks; ++r) {
    const A* part = row + r * step;
    all.sum += part[1] * power_of_2(fma(part[0], kLog2E<A>, -all.shift));
    score += part[2];
  }
  return all;
}

template <class T>
__global__ void __launch_bounds__(kThreads, sizeof(T) == 8 ? 1 : kBlocks) inspect(Arguments<T> a) {
  using A = Math<T>;
  __shared__ A scratch[32];
  const T* row = a.logits + std::int64_t{blockIdx.x} * a.width;
  OnlineSum<A> online = sum_of_row(a, row);
  online.combine(scratch);
  if (threadIdx.x != 0) return;
  const std::int64_t target = a.targets[blockIdx.x] - a.first_token;
  A* out = a.statistics + std::int64_t{blockIdx.x} * LogitStatistics::kValues;
  out[0] = a.vocab > 0 ? online.shift * std::numbers::ln2_v<A> : -static_cast<A>(INFINITY);
  out[1] = a.vocab > 0 ? online.sum : A{0};
  out[2] = target >= 0 && target < a.vocab ? load_value(row[target]) : A{0};
}

template <class T>
__global__ void __launch_bounds__(kThreads, sizeof(T) == 8 ? 1 : kBlocks) classify(Arguments<T> a) {
  using A = Math<T>;
  __shared__ A scratch[32];
  T* row = a.logits + std::int64_t{blockIdx.x} * a.width;
  const std::int64_t id = a.targets[blockIdx.x], target = id - a.first_token;
  if (id < 0) {
    if (threadIdx.x == 0) a.losses[blockIdx.x] = 0;
    if (a.write_gradient) clear_row(a, row);
    return;
  }
  // Read before its place is overwritten: barriers lie between.
  const A own = target >= 0 && target < a.vocab ? load_value(row[target]) : A{NAN};
  A score = own;
  OnlineSum<A> online;
  if (a.statistics == nullptr) {
    online = sum_of_row(a, row);
    online.combine(scratch);
  } else {
    online = sum_of_ranks(a, score);
  }
  if (threadIdx.x == 0) {
    constexpr A kLn2 = std::numbers::ln2_v<A>;
    a.losses[blockIdx.x] = fma(-score, kLog2E<A>, online.shift) * kLn2 + log(online.sum);
  }
  if (a.write_gradient) store_gradient(a, row, target, own, online.shift, a.scale / online.sum);
}

// What both ops have.
template <class T, class Op>
Arguments<T> arguments_of(const Op& op) {
  const std::int64_t width = op.logits.columns();
  const bool packed = aligned_16(op.logits.data) && width % kPack<T> == 0;
  return {op.logits.template as<T>(),
          op.targets.template as<std::int32_t>(),
          width,
          op.vocab,
          packed ? op.vocab / kPack<T> : 0,
          op.first_token};
}

template <class T>
void launch_rows(const TensorView& logits, const ExecContext& context, void (*kernel)(Arguments<T>),
                 const Arguments<T>& arguments) {
  const std::int64_t packs = blocks_for(logits.columns(), 32 * kPack<T>);
  const auto block = std::clamp<std::int64_t>(packs * 32, 32, kThreads);
  launch(context.stream, {logits.rows(), 1, static_cast<int>(block), 0}, kernel, arguments);
}

}  // namespace

void execute(const CrossEntropy& op, const ExecContext& context) {
  if (op.logits.rows() == 0) return;
  with_float_type(op.logits.dtype, op.kName, [&](auto type) {
    using T = decltype(type);
    Arguments<T> a = arguments_of<T>(op);
    a.losses = op.losses.as<Math<T>>();
    a.scale = static_cast<Math<T>>(op.grad_scale);
    a.write_gradient = op.write_gradient;
    if (!op.statistics.empty()) {
      a.statistics = op.statistics.as<Math<T>>();
      a.ranks = op.statistics.count() / (LogitStatistics::kValues * op.logits.rows());
    }
    launch_rows(op.logits, context, classify<T>, a);
  });
}

void execute(const LogitStatistics& op, const ExecContext& context) {
  if (op.logits.rows() == 0) return;
  with_float_type(op.logits.dtype, op.kName, [&](auto type) {
    using T = decltype(type);
    Arguments<T> a = arguments_of<T>(op);
    a.statistics = op.statistics.as<Math<T>>();
    launch_rows(op.logits, context, inspect<T>, a);
  });
}

}  // namespace zl::cuda
