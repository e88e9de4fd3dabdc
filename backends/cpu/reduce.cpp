#include "backends/cpu/reduce.h"

#include <algorithm>
#include <cstring>
#include <type_traits>

#include "backends/cpu/ops/element.h"

namespace zl::cpu {
namespace {

// Accumulators of a block and one block of each source stay in the first-level cache.
constexpr std::int64_t kReduceBlock = 2048;

template <class T>
using Sum = std::conditional_t<std::is_same_v<T, std::int32_t>, std::int64_t, Arithmetic<T>>;

template <class T>
inline Sum<T> widened(T value) {
  if constexpr (std::is_same_v<T, std::int32_t>) {
    return value;
  } else {
    return widen<Sum<T>>(value);
  }
}

template <class T>
inline T narrowed(Sum<T> value) {
  if constexpr (std::is_same_v<T, std::int32_t>) {
    return static_cast<T>(value);
  } else {
    return narrow<T>(value);
  }
}

// NaN wins over numbers.
template <class A>
inline A larger(A a, A b) {
  return b > a || b != b ? b : a;
}

template <ReduceOp op, class A>
inline A combine(A a, A b) {
  return op == ReduceOp::max ? larger(a, b) : a + b;
}

template <class T, ReduceOp op>
void accumulate(std::span<const std::byte* const> sources, std::int64_t first, std::int64_t count,
                Sum<T>* __restrict sums) {
  const auto source = [&](std::size_t rank) {
    return reinterpret_cast<const T*>(sources[rank]) + first;
  };
  const T* __restrict a = source(0);
  if (sources.size() == 1) {
    for (std::int64_t i = 0; i < count; ++i) sums[i] = widened<T>(a[i]);
    return;
  }
  const T* __restrict b = source(1);
  for (std::int64_t i = 0; i < count; ++i) {
    sums[i] = combine<op>(widened<T>(a[i]), widened<T>(b[i]));
  }
  for (std::size_t rank = 2; rank < sources.size(); ++rank) {
    const T* __restrict next = source(rank);
    for (std::int64_t i = 0; i < count; ++i) sums[i] = combine<op>(sums[i], widened<T>(next[i]));
  }
}

template <class T>
void finish(const Sum<T>* __restrict sums, Sum<T> scale, T* __restrict target, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) target[i] = narrowed<T>(sums[i] * scale);
}

template <class T, ReduceOp op>
void reduce_as(std::span<const std::byte* const> sources, std::span<std::byte* const> destinations,
               std::int64_t count, Sum<T> scale) {
  alignas(64) Sum<T> sums[kReduceBlock];
  for (std::int64_t first = 0; first < count; first += kReduceBlock) {
    const std::int64_t length = std::min(kReduceBlock, count - first);
    accumulate<T, op>(sources, first, length, sums);
    T* target = reinterpret_cast<T*>(destinations[0]) + first;
    finish<T>(sums, scale, target, length);
    for (std::byte* other : destinations.subspan(1)) {
      std::memcpy(reinterpret_cast<T*>(other) + first, target, length * sizeof(T));
    }
  }
}

template <class T>
void reduce_type(ReduceOp op, std::span<const std::byte* const> sources,
                 std::span<std::byte* const> destinations, std::int64_t count) {
  const Sum<T> scale =
      op == ReduceOp::average ? Sum<T>{1} / static_cast<Sum<T>>(sources.size()) : Sum<T>{1};
  if (op == ReduceOp::max) {
    reduce_as<T, ReduceOp::max>(sources, destinations, count, scale);
  } else {
    reduce_as<T, ReduceOp::sum>(sources, destinations, count, scale);
  }
}

}  // namespace

void reduce(DType dtype, ReduceOp op, std::span<const std::byte* const> sources,
            std::span<std::byte* const> destinations, std::int64_t count) {
  switch (dtype) {
    case DType::f64:
      return reduce_type<double>(op, sources, destinations, count);
    case DType::f32:
      return reduce_type<float>(op, sources, destinations, count);
    case DType::bf16:
      return reduce_type<bfloat16>(op, sources, destinations, count);
    case DType::f16:
      return reduce_type<float16>(op, sources, destinations, count);
    case DType::i32:
      return reduce_type<std::int32_t>(op, sources, destinations, count);
    default:
      ZL_CHECK(false, "collectives reduce floating types and int32");
  }
}

}  // namespace zl::cpu
