// Element types inside kernels: dispatch on the stored type, conversion to the arithmetic type.
// Ownership: nothing. Threads: pure functions.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstring>
#include <string>
#include <type_traits>
#include <utility>

#include "backends/cpu/ops/vector.h"
#include "core/base/error.h"
#include "core/base/tensor.h"

namespace zl::cpu {

// What kernels compute in: f64 for f64, f32 for everything else.
template <class T>
using Arithmetic = std::conditional_t<std::is_same_v<T, double>, double, float>;

template <class A, class T>
inline A widen(T value) {
  if constexpr (std::is_same_v<T, double>) {
    return static_cast<A>(value);
  } else {
    return static_cast<A>(to_float(value));
  }
}

template <class T, class A>
inline T narrow(A value) {
  if constexpr (std::is_same_v<T, double>) {
    return static_cast<double>(value);
  } else {
    return from_float<T>(static_cast<float>(value));
  }
}

// As many elements as a vector has lanes.
template <class A, class T>
[[gnu::always_inline]] inline Vector<A> load_widened(const T* from) {
  if constexpr (std::is_same_v<T, A>) {
    return load_vector(from);
  } else if constexpr (std::is_same_v<T, bfloat16>) {  // the upper half of fp32
    HalfVector<std::uint16_t> halves;
    std::memcpy(&halves, from, sizeof(halves));
    return std::bit_cast<Vector<A>>(zero_extended(halves) << 16);
  } else {
    A values[kLanes<A>];
    for (int i = 0; i < kLanes<A>; ++i) values[i] = widen<A>(from[i]);
    return load_vector(values);
  }
}

// Calls fn(T{}) with the C++ type of a floating dtype; Error{failed} naming `op` for another.
template <class F>
decltype(auto) with_float_type(DType dtype, const char* op, F&& fn) {
  switch (dtype) {
    case DType::f64:
      return std::forward<F>(fn)(double{});
    case DType::f32:
      return std::forward<F>(fn)(float{});
    case DType::bf16:
      return std::forward<F>(fn)(bfloat16{});
    case DType::f16:
      return std::forward<F>(fn)(float16{});
    default:
      throw Error(ErrorCode::failed,
                  std::string(op) + ": " + name_of(dtype) + " is not a floating type");
  }
}

inline constexpr std::int64_t kBlock = 1024;  // elements a kernel keeps in first-level cache

// Elements [first, first + count) of a floating tensor as arithmetic values: the tensor's own
// memory where it has type A, else converted into `buffer`.
template <class A>
const A* load(const TensorView& view, std::int64_t first, std::int64_t count, A* buffer) {
  if (view.dtype == dtype_of<A>::value) return view.as<const A>() + first;
  with_float_type(view.dtype, "load", [&](auto type) {
    using T = decltype(type);
    const T* __restrict source = view.as<const T>() + first;
    A* __restrict target = buffer;
    for (std::int64_t i = 0; i < count; ++i) target[i] = widen<A>(source[i]);
  });
  return buffer;
}

// Elements [first, first + count) of a floating tensor = values (+ what is there).
template <class A>
void store(const TensorView& view, std::int64_t first, std::int64_t count, const A* values,
           bool accumulate = false) {
  with_float_type(view.dtype, "store", [&](auto type) {
    using T = decltype(type);
    T* __restrict target = view.as<T>() + first;
    const A* __restrict source = values;
    if (accumulate) {
      for (std::int64_t i = 0; i < count; ++i) {
        target[i] = narrow<T>(widen<A>(target[i]) + source[i]);
      }
    } else {
      for (std::int64_t i = 0; i < count; ++i) target[i] = narrow<T>(source[i]);
    }
  });
}

// fn(A{}) with A = double when any of the (present) tensors is f64, else float; Error{failed}
// naming `op` when one of them is not floating.
template <class F, class... Views>
void with_arithmetic(const char* op, F&& fn, const Views&... views) {
  const auto check = [op](const TensorView& view) {
    if (!view.empty()) with_float_type(view.dtype, op, [](auto) {});
  };
  (check(views), ...);
  if (((!views.empty() && views.dtype == DType::f64) || ...)) {
    fn(double{});
  } else {
    fn(float{});
  }
}

// Sum of f(0) ... f(count - 1) in 32 interleaved lanes: vectorises, and the result does not depend
// on alignment or vector width.
template <class A, class F>
inline A lane_sum(std::int64_t count, F&& f) {
  constexpr std::int64_t kTogether = 32;
  A lanes[kTogether] = {};
  std::int64_t i = 0;
  for (; i + kTogether <= count; i += kTogether) {
    for (std::int64_t lane = 0; lane < kTogether; ++lane) lanes[lane] += f(i + lane);
  }
  for (std::int64_t lane = 0; i + lane < count; ++lane) lanes[lane] += f(i + lane);
  for (std::int64_t half = kTogether / 2; half > 0; half /= 2) {
    for (std::int64_t lane = 0; lane < half; ++lane) lanes[lane] += lanes[lane + half];
  }
  return lanes[0];
}

}  // namespace zl::cpu
