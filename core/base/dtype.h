// Element types of tensors and the conversions between them.
// Threads: pure functions.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>

namespace zl {

enum class DType : std::uint8_t { f64, f32, bf16, f16, i64, i32, u16, u8 };

constexpr std::size_t size_of(DType dtype) {
  switch (dtype) {
    case DType::f64:
    case DType::i64:
      return 8;
    case DType::f32:
    case DType::i32:
      return 4;
    case DType::bf16:
    case DType::f16:
    case DType::u16:
      return 2;
    case DType::u8:
      return 1;
  }
  return 0;
}

constexpr bool is_half(DType dtype) { return dtype == DType::bf16 || dtype == DType::f16; }

const char* name_of(DType dtype);  // "fp32", "bf16", ...
DType parse_dtype(
    std::string_view name);  // accepts fp32|float32, bf16|bfloat16, fp16|float16; throws

// 16-bit storage types: arithmetic is done in float.
struct bfloat16 {
  std::uint16_t bits;
};
struct float16 {
  std::uint16_t bits;
};

// Round to nearest even; NaN becomes 0x7fc0 with its sign (the field's convention).
constexpr bfloat16 to_bfloat16(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  if ((bits & 0x7fffffffu) > 0x7f800000u) {
    return {static_cast<std::uint16_t>(((bits >> 16) & 0x8000u) | 0x7fc0u)};
  }
  const std::uint32_t rounding = 0x7fffu + ((bits >> 16) & 1u);
  return {static_cast<std::uint16_t>((bits + rounding) >> 16)};
}

// Away from zero with the probability of what is cut off (unbiased), else towards zero; the low 16
// bits of `random` decide. NaN and infinity as above.
constexpr bfloat16 round_stochastically(float value, std::uint32_t random) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  if ((bits & 0x7f800000u) == 0x7f800000u) return to_bfloat16(value);
  return {static_cast<std::uint16_t>((bits + (random & 0xffffu)) >> 16)};
}

constexpr float to_float(bfloat16 value) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(value.bits) << 16);
}

// IEEE 754 binary16, round to nearest even; overflow becomes infinity, subnormals are kept.
constexpr float16 to_float16(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t sign = (bits >> 16) & 0x8000u;
  const std::uint32_t magnitude = bits & 0x7fffffffu;
  if (magnitude > 0x7f800000u) return {static_cast<std::uint16_t>(sign | 0x7e00u)};
  if (magnitude >= 0x477ff000u) return {static_cast<std::uint16_t>(sign | 0x7c00u)};
  if (magnitude < 0x38800000u) {
    // Subnormal half: adding 0.5f places the rounding at the half's last bit.
    const float shifted = std::bit_cast<float>(magnitude) + 0.5f;
    return {
        static_cast<std::uint16_t>(sign | (std::bit_cast<std::uint32_t>(shifted) - 0x3f000000u))};
  }
  const std::uint32_t rounded = magnitude + 0x0fffu + ((magnitude >> 13) & 1u);
  return {static_cast<std::uint16_t>(sign | ((rounded - 0x38000000u) >> 13))};
}

constexpr float to_float(float16 value) {
  const std::uint32_t sign = (value.bits & 0x8000u) << 16;
  const std::uint32_t exponent = (value.bits >> 10) & 0x1fu;
  const std::uint32_t mantissa = value.bits & 0x3ffu;
  if (exponent == 0x1fu) return std::bit_cast<float>(sign | 0x7f800000u | (mantissa << 13));
  if (exponent == 0) {
    const float magnitude = static_cast<float>(mantissa) * 0x1p-24f;
    return sign ? -magnitude : magnitude;
  }
  return std::bit_cast<float>(sign | ((exponent + 112u) << 23) | (mantissa << 13));
}

constexpr float to_float(float value) { return value; }

// from_float<T>(x): the stored form of x.
template <class T>
constexpr T from_float(float value) {
  if constexpr (sizeof(T) == 2) {
    if constexpr (std::is_same_v<T, bfloat16>) {
      return to_bfloat16(value);
    } else {
      return to_float16(value);
    }
  } else {
    return static_cast<T>(value);
  }
}

template <class T>
struct dtype_of;
template <>
struct dtype_of<double> {
  static constexpr DType value = DType::f64;
};
template <>
struct dtype_of<float> {
  static constexpr DType value = DType::f32;
};
template <>
struct dtype_of<bfloat16> {
  static constexpr DType value = DType::bf16;
};
template <>
struct dtype_of<float16> {
  static constexpr DType value = DType::f16;
};
template <>
struct dtype_of<std::int32_t> {
  static constexpr DType value = DType::i32;
};

}  // namespace zl
