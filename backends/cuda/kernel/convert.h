// Storage types and the type that arithmetic is done in: f32 for 16-bit and 32-bit storage, f64 for
// f64. Ownership: nothing. Threads: pure functions, host and device.
#pragma once

#include <string>
#include <type_traits>

#include "backends/cuda/kernel/platform.h"
#include "core/base/dtype.h"
#include "core/base/error.h"

namespace zl::cuda {

template <class T>
using Math = std::conditional_t<std::is_same_v<T, double>, double, float>;

// The stored value in the arithmetic type.
template <class T>
__device__ __forceinline__ Math<T> load_value(T value) {
  if constexpr (std::is_same_v<T, double> || std::is_same_v<T, float>) {
    return value;
  } else if constexpr (std::is_same_v<T, bfloat16>) {
    return to_float(value);
  } else {
#ifdef __CUDA_ARCH__
    return __half2float(__ushort_as_half(value.bits));
#else
    return to_float(value);
#endif
  }
}

// Rounds to nearest even.
template <class T, class M>
__device__ __forceinline__ T store_value(M value) {
  if constexpr (std::is_same_v<T, double> || std::is_same_v<T, float>) {
    return static_cast<T>(value);
  } else {
#ifdef __CUDA_ARCH__
    if constexpr (std::is_same_v<T, bfloat16>) {
      return {__bfloat16_as_ushort(__float2bfloat16_rn(static_cast<float>(value)))};
    } else {
      return {__half_as_ushort(__float2half_rn(static_cast<float>(value)))};
    }
#else
    return from_float<T>(static_cast<float>(value));
#endif
  }
}

// a * b rounded on its own, never contracted with an addition.
__device__ __forceinline__ double rounded_product(double a, double b) {
#ifdef __CUDA_ARCH__
  return __dmul_rn(a, b);
#else
  return a * b;
#endif
}

// Calls f with a value of the C++ type of `dtype` (f64, f32, bf16 or f16).
template <class F>
void with_float_type(DType dtype, const char* op, F&& f) {
  switch (dtype) {
    case DType::f64:
      return f(double{});
    case DType::f32:
      return f(float{});
    case DType::bf16:
      return f(bfloat16{});
    case DType::f16:
      return f(float16{});
    default:
      throw Error(ErrorCode::failed,
                  std::string(op) + ": " + name_of(dtype) + " is not a floating type it runs on");
  }
}

// Calls f(X{}, G{}) for the type of a tensor and of the gradient that its ops write: f64 goes with
// f64, every other type with every other.
template <class F>
void with_gradient_type(DType x, DType gradient, const char* op, F&& f) {
  with_float_type(x, op, [&](auto x_type) {
    with_float_type(gradient, op, [&](auto gradient_type) {
      using X = decltype(x_type);
      using G = decltype(gradient_type);
      if constexpr (std::is_same_v<X, double> == std::is_same_v<G, double>) {
        f(X{}, G{});
      } else {
        throw Error(ErrorCode::failed, std::string(op) + ": no gradient in " + name_of(gradient) +
                                           " for values in " + name_of(x));
      }
    });
  });
}

// Calls f(X{}, Y{}, A{}) for the types x and y; A is f64 when either is.
template <class F>
void with_two_types(DType x, DType y, const char* op, F&& f) {
  with_float_type(x, op, [&](auto x_type) {
    with_float_type(y, op, [&](auto y_type) {
      using X = decltype(x_type);
      using Y = decltype(y_type);
      constexpr bool kWide = std::is_same_v<X, double> || std::is_same_v<Y, double>;
      f(X{}, Y{}, std::conditional_t<kWide, double, float>{});
    });
  });
}

}  // namespace zl::cuda
