#include "backends/cuda/collectives/reduce.h"

#include "backends/cuda/kernel/runs.h"

namespace zl::cuda {
namespace {

template <class T>
using Sum = std::conditional_t<std::is_same_v<T, std::int32_t>, std::int64_t, Math<T>>;

template <class T>
__device__ __forceinline__ Sum<T> widened(T value) {
  if constexpr (std::is_same_v<T, std::int32_t>) {
    return value;
  } else {
    return load_value(value);
  }
}
template <class T>
__device__ __forceinline__ T narrowed(Sum<T> value) {
  if constexpr (std::is_same_v<T, std::int32_t>) {
    return static_cast<T>(value);
  } else {
    return store_value<T>(value);
  }
}

// NaN wins over numbers.
template <class A>
__device__ __forceinline__ A combine(bool maximum, A a, A b) {
  if (!maximum) return a + b;
  return b > a || b != b ? b : a;
}

template <class T>
struct ReduceBody {
  RankPointers sources, destinations;
  int ranks, writers;
  Sum<T> scale;
  bool maximum, packed;

  __device__ void load(int rank, std::int64_t first, std::int64_t length,
                       Sum<T> (&values)[kRun]) const {
    const T* from = reinterpret_cast<const T*>(sources.at[rank]) + first;
    if (packed && length == kRun) {
#pragma unroll
      for (int i = 0; i < kRun; i += kPack<T>) {
        const Packed<T> pack = load_packed(from + i);
#pragma unroll
        for (int j = 0; j < kPack<T>; ++j) values[i + j] = widened(pack.at[j]);
      }
    } else {
      for (int i = 0; i < length; ++i) values[i] = widened(from[i]);
    }
  }

  __device__ void operator()(std::int64_t first, std::int64_t length) const {
    Sum<T> sums[kRun] = {}, next[kRun] = {};
    load(0, first, length, sums);
    for (int rank = 1; rank < ranks; ++rank) {
      load(rank, first, length, next);
#pragma unroll
      for (int i = 0; i < kRun; ++i) sums[i] = combine(maximum, sums[i], next[i]);
    }
    for (int writer = 0; writer < writers; ++writer) {
      T* to = reinterpret_cast<T*>(destinations.at[writer]) + first;
      if (packed && length == kRun) {
#pragma unroll
        for (int i = 0; i < kRun; i += kPack<T>) {
          Packed<T> pack;
#pragma unroll
          for (int j = 0; j < kPack<T>; ++j) pack.at[j] = narrowed<T>(sums[i + j] * scale);
          store_packed(to + i, pack);
        }
      } else {
        for (int i = 0; i < length; ++i) to[i] = narrowed<T>(sums[i] * scale);
      }
    }
  }
};

template <class T>
void reduce_as(const ExecContext& context, ReduceOp op, const RankPointers& sources, int ranks,
               const RankPointers& destinations, int writers, std::int64_t count) {
  bool packed = true;
  for (int i = 0; i < ranks; ++i) packed = packed && aligned_16(sources.at[i]);
  for (int i = 0; i < writers; ++i) packed = packed && aligned_16(destinations.at[i]);
  const Sum<T> scale = op == ReduceOp::average ? Sum<T>{1} / static_cast<Sum<T>>(ranks) : Sum<T>{1};
  launch_runs(
      context, count,
      ReduceBody<T>{sources, destinations, ranks, writers, scale, op == ReduceOp::max, packed});
}

}  // namespace

void reduce(const ExecContext& context, DType dtype, ReduceOp op, const RankPointers& sources,
            int ranks, const RankPointers& destinations, int writers, std::int64_t count) {
  const auto run = [&](auto type) {
    reduce_as<decltype(type)>(context, op, sources, ranks, destinations, writers, count);
  };
  if (dtype == DType::i32) {
    run(std::int32_t{});
  } else {
    with_float_type(dtype, "reduction", run);
  }
}

}  // namespace zl::cuda
