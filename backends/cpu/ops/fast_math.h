// Elementary functions for kernels: branch-free float versions that vectorise (error of a few
// 1e-7 relative), the standard library for double. Ownership: nothing. Threads: pure functions.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <numbers>

#include "backends/cpu/ops/vector.h"

namespace zl::cpu {

inline float multiply_add(float a, float b, float c) {
#if defined(__FMA__) || defined(__ARM_FEATURE_FMA)
  return std::fma(a, b, c);
#else
  return a * b + c;
#endif
}

inline double fast_exp(double x) { return std::exp(x); }

// e^x = 2^n e^r with |r| <= ln(2)/2 and e^r by its series. 0 below -87.3 (where the result would be
// subnormal), infinity above 88.7; NaN stays NaN. F: float or a vector of them, with integers I.
template <class I, class F>
inline F exp_by_series(F x) {
  constexpr float kLowest = -87.3f, kHighest = 89.0f;
  constexpr float kRounder = 12582912.0f;  // 1.5 * 2^23: adding it rounds to an integer
  const auto all = [](float value) { return value - F{}; };
  F clamped = x < kLowest ? all(kLowest) : x;
  clamped = clamped > kHighest ? all(kHighest) : clamped;
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
  // 2^n as 2^half * 2^(n - half): n may be 128, which has no float of its own.
  const I exponent = std::bit_cast<I>(shifted) - 0x4b400000;
  const I half = exponent >> 1;
  const auto power = [](I e) { return std::bit_cast<F>((e + 127) << 23); };
  const F value = p * power(half) * power(exponent - half);
  return x < kLowest ? F{} : value;
}

inline float fast_exp(float x) { return exp_by_series<std::int32_t>(x); }
inline Vector<float> fast_exp(Vector<float> x) { return exp_by_series<Vector<std::int32_t>>(x); }
inline Vector<double> fast_exp(Vector<double> x) {
  for (int lane = 0; lane < kLanes<double>; ++lane) x[lane] = std::exp(x[lane]);
  return x;
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
