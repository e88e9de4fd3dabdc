// Elementary functions for kernels: branch-free float versions that vectorise (error of a few
// 1e-7 relative), the standard library for double. Ownership: nothing. Threads: pure functions.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <numbers>
#include <type_traits>

#include "backends/cpu/ops/vector.h"

namespace zl::cpu {

inline float multiply_add(float a, float b, float c) {
#if defined(__FMA__) || defined(__ARM_FEATURE_FMA)
  return std::fma(a, b, c);
#else
  return a * b + c;
#endif
}

inline float larger(float a, float b) { return a > b ? a : b; }
inline float smaller(float a, float b) { return a < b ? a : b; }

inline double fast_exp(double x) { return std::exp(x); }

// e^x = 2^n e^r with |r| <= ln(2)/2 and e^r by its series. 0 below -87.3 (where the result would be
// subnormal), infinity above 88.7; NaN stays NaN. F: float or a vector of them, with integers I.
template <class I, class F>
[[gnu::always_inline]] inline F exp_by_series(F x) {
  constexpr float kLowest = -87.3f, kHighest = 89.0f;
  constexpr float kRounder = 12582912.0f;  // 1.5 * 2^23: adding it rounds to an integer
  const auto all = [](float value) { return value - F{}; };
  const F clamped = smaller(all(kHighest), larger(all(kLowest), x));  // NaN stays
  const F shifted = multiply_add(clamped, all(1.44269504f), all(kRounder));
  const F n = shifted - kRounder;
  // ln 2 in two parts, the first with few enough bits that n times it is exact.
  F r = multiply_add(n, all(-0.693359375f), clamped);
  r = multiply_add(n, all(2.12194440e-4f), r);
  F p = all(1.0f / 5040);
  p = multiply_add(p, r, all(1.0f / 720));
  p = multiply_add(p, r, all(1.0f / 120));
  p = multiply_add(p, r, all(1.0f / 24));
  p = multiply_add(p, r, all(1.0f / 6));
  p = multiply_add(p, r, all(0.5f));
  p = multiply_add(p, r, all(1.0f));
  p = multiply_add(p, r, all(1.0f));
#if defined(__AVX512F__)
  if constexpr (std::is_same_v<F, Vector<float>>) {
    const __mmask16 lasts = _mm512_cmp_ps_mask(x, all(kLowest), _CMP_NLT_UQ);
    return _mm512_maskz_scalef_ps(lasts, p, n);
  }
#endif
  // 2^n as 2^half * 2^(n - half): n may be 128, which has no float of its own.
  const I exponent = std::bit_cast<I>(shifted) - 0x4b400000;
  const I half = exponent >> 1;
  const auto power = [](I e) { return std::bit_cast<F>((e + 127) << 23); };
  const F value = p * power(half) * power(exponent - half);
  return x < kLowest ? F{} : value;
}

inline float fast_exp(float x) { return exp_by_series<std::int32_t>(x); }
[[gnu::always_inline]] inline Vector<float> fast_exp(Vector<float> x) {
  return exp_by_series<Vector<std::int32_t>>(x);
}
inline Vector<double> fast_exp(Vector<double> x) {
  for (int lane = 0; lane < kLanes<double>; ++lane) x[lane] = std::exp(x[lane]);
  return x;
}

inline Vector<double> fast_log(Vector<double> x) {
  for (int lane = 0; lane < kLanes<double>; ++lane) x[lane] = std::log(x[lane]);
  return x;
}

// Natural logarithm of x = 2^n (1 + f), sqrt(1/2) <= 1 + f < sqrt(2): n ln(2) + log(1 + f), the
// latter f - f^2 / 2 + f^3 P(f) with P fitted to a relative error of 6e-9. Within an ulp for normal
// numbers; 0 gives minus infinity; NaN stays NaN.
inline Vector<float> fast_log(Vector<float> x) {
  constexpr float kCoefficients[] = {-0.07634474f, 0.12761568f, -0.13160187f, 0.14201759f,
                                     -0.16623357f, 0.20001227f, -0.2500082f,  0.3333333f};
  typedef Vector<std::int32_t> Bits;
  const auto all = [](float value) { return value - Vector<float>{}; };
  const Bits bits = std::bit_cast<Bits>(x);
  const Bits exponent = (bits - 0x3f3504f3) >> 23;  // from sqrt(1/2) on
  const Vector<float> n = __builtin_convertvector(exponent, Vector<float>);
  const Vector<float> f = std::bit_cast<Vector<float>>(bits - (exponent << 23)) - 1.0f;
  const Vector<float> square = f * f;
  Vector<float> p = all(kCoefficients[0]);
#pragma GCC unroll 8
  for (int i = 1; i < 8; ++i) p = multiply_add(p, f, all(kCoefficients[i]));
  // ln 2 in two parts, as in the exponential.
  Vector<float> small = multiply_add(n, all(-2.12194440e-4f), f * square * p);
  small = multiply_add(square, all(-0.5f), small);
  const Vector<float> value = multiply_add(n, all(0.693359375f), f + small);
  const Vector<float> known = x > 0.0f ? value : all(-std::numeric_limits<float>::infinity());
  return x == x ? known : x;  // NOLINT(misc-redundant-expression): false for NaN
}

// Q(x) = erfc(x / sqrt(2)) / 2, the normal distribution's upper tail, for x >= 0; bell =
// e^(-x^2/2).
inline double normal_tail(double x, double /*bell*/) {
  return 0.5 * std::erfc(x * std::numbers::sqrt2 / 2);
}

// With z = x / sqrt(2): e^(z^2) erfc(z) (1 + 2 z) / 2 is smooth on [0, infinity); here a polynomial
// in t = (z - 3) / (z + 3), a Chebyshev fit of relative error 4e-9.
inline float normal_tail(float x, float bell) {
  constexpr float kCoefficients[] = {3.85380913e-05f, -4.62016171e-05f, -0.000362921202f,
                                     0.000937364219f, 0.00124927298f,   -0.0118816372f,
                                     0.0341583975f,   -0.0596376904f,   0.0648220396f,
                                     -0.0237810721f,  -0.067810534f,    0.626504028f};
  const float z = x * 0.707106781f;
  const float t = (z - 3.0f) / (z + 3.0f);
  float p = kCoefficients[0];
#pragma GCC unroll 16
  for (int i = 1; i < 12; ++i) p = multiply_add(p, t, kCoefficients[i]);
  return bell * p / multiply_add(2.0f, z, 1.0f);
}

}  // namespace zl::cpu
