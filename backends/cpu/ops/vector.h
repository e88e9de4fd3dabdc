// Fixed-width vectors of the compiler (GCC and Clang vector extensions) and the few operations that
// the matrix kernels need. Ownership: nothing. Threads: pure functions.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <utility>

#if defined(__AVX__) || defined(__AVX512F__)
#include <immintrin.h>
#endif

namespace zl::cpu {

#if defined(__AVX512F__)
inline constexpr int kVectorBytes = 64;
#elif defined(__AVX__)
inline constexpr int kVectorBytes = 32;
#else
inline constexpr int kVectorBytes = 16;
#endif

template <class A>
struct VectorOf {
  typedef A type __attribute__((vector_size(kVectorBytes)));
};
template <class A>
using Vector = typename VectorOf<A>::type;
template <class A>
inline constexpr int kLanes = kVectorBytes / static_cast<int>(sizeof(A));

// As many elements of half a size as a vector has.
template <class A>
struct HalfVectorOf {
  typedef A type __attribute__((vector_size(kVectorBytes / 2)));
};
template <class A>
using HalfVector = typename HalfVectorOf<A>::type;

template <class A>
inline Vector<A> load_vector(const A* source) {
  Vector<A> value;
  std::memcpy(&value, source, sizeof(value));
  return value;
}

template <class A>
inline void store_vector(A* target, Vector<A> value) {
  std::memcpy(target, &value, sizeof(value));
}

// kVectorBytes from `source` to `target`, both aligned to as many, past the caches where the
// processor can: for what is not read soon again. Others may read it after end_of_streams().
inline void stream_vector(void* target, const void* source) {
#if defined(__AVX512F__)
  _mm512_stream_si512(static_cast<__m512i*>(target), _mm512_load_si512(source));
#elif defined(__AVX__)
  _mm256_stream_si256(static_cast<__m256i*>(target),
                      _mm256_load_si256(static_cast<const __m256i*>(source)));
#else
  std::memcpy(target, source, kVectorBytes);
#endif
}
inline void end_of_streams() {
#if defined(__AVX__)
  _mm_sfence();
#endif
}

template <class A>
inline Vector<A> broadcast(A value) {
  return value - Vector<A>{};
}

// a * b + c in one rounding where the processor has it.
inline Vector<float> multiply_add(Vector<float> a, Vector<float> b, Vector<float> c) {
#if defined(__AVX512F__)
  return _mm512_fmadd_ps(a, b, c);
#elif defined(__FMA__)
  return _mm256_fmadd_ps(a, b, c);
#else
  return a * b + c;
#endif
}
inline Vector<double> multiply_add(Vector<double> a, Vector<double> b, Vector<double> c) {
#if defined(__AVX512F__)
  return _mm512_fmadd_pd(a, b, c);
#elif defined(__FMA__)
  return _mm256_fmadd_pd(a, b, c);
#else
  return a * b + c;
#endif
}

#if defined(__AVX512F__)
// Of instructions whose unmasked form GCC 12 takes for a use of what is not initialised.
inline constexpr __mmask16 kAllLanes = 0xffff;
#endif

// a > b ? a : b and a < b ? a : b: b where one of them is no number.
inline Vector<double> larger(Vector<double> a, Vector<double> b) { return a > b ? a : b; }
inline Vector<float> larger(Vector<float> a, Vector<float> b) {
#if defined(__AVX512F__)
  return _mm512_maskz_max_ps(kAllLanes, a, b);
#elif defined(__AVX__)
  return _mm256_max_ps(a, b);
#else
  return a > b ? a : b;
#endif
}
inline Vector<float> smaller(Vector<float> a, Vector<float> b) {
#if defined(__AVX512F__)
  return _mm512_maskz_min_ps(kAllLanes, a, b);
#elif defined(__AVX__)
  return _mm256_min_ps(a, b);
#else
  return a < b ? a : b;
#endif
}

// Each lane with zeros in front. (GCC 12 makes four shuffles of a conversion of vectors.)
inline Vector<std::uint32_t> zero_extended(HalfVector<std::uint16_t> values) {
#if defined(__AVX512F__)
  return std::bit_cast<Vector<std::uint32_t>>(
      _mm512_maskz_cvtepu16_epi32(kAllLanes, std::bit_cast<__m256i>(values)));
#elif defined(__AVX2__)
  return std::bit_cast<Vector<std::uint32_t>>(
      _mm256_cvtepu16_epi32(std::bit_cast<__m128i>(values)));
#else
  return __builtin_convertvector(values, Vector<std::uint32_t>);
#endif
}

template <std::size_t... I>
inline Vector<std::uint16_t> high_halves(Vector<std::uint32_t> low, Vector<std::uint32_t> high,
                                         std::index_sequence<I...>) {
  return __builtin_shufflevector(std::bit_cast<Vector<std::uint16_t>>(low),
                                 std::bit_cast<Vector<std::uint16_t>>(high), (2 * I + 1)...);
}

// As to_bfloat16, of all lanes of two vectors.
inline Vector<std::uint16_t> to_bfloat16_bits(Vector<float> low, Vector<float> high) {
#if defined(__AVX512BF16__)
  constexpr int kNaN = 0x81, kSubnormal = 0x20;  // which the instruction changes otherwise
  const auto odd = [](Vector<float> value) {
    return _mm512_fpclass_ps_mask(value, kNaN | kSubnormal);
  };
  if (__builtin_expect(_kortestz_mask16_u8(odd(low), odd(high)), 1)) {
    return std::bit_cast<Vector<std::uint16_t>>(_mm512_cvtne2ps_pbh(high, low));
  }
#endif
  typedef Vector<std::uint32_t> Bits;
  const auto rounded = [](Vector<float> value) {
    const Bits bits = std::bit_cast<Bits>(value);
    // NOLINTNEXTLINE(misc-redundant-expression): false for NaN
    return value == value ? bits + 0x7fffu + ((bits >> 16) & 1u)
                          : (bits & 0x80000000u) | 0x7fc00000u;
  };
  constexpr std::size_t kHalves = kVectorBytes / sizeof(std::uint16_t);
  return high_halves(rounded(low), rounded(high), std::make_index_sequence<kHalves>{});
}

// One round of a square transpose: swaps the off-diagonal Step x Step blocks of rows low, high.
template <int Step, class V, std::size_t... I>
inline void swap_blocks(V& low, V& high, std::index_sequence<I...>) {
  constexpr int kWidth = static_cast<int>(sizeof...(I));
  const V first = __builtin_shufflevector(
      low, high, ((I & Step) ? kWidth + static_cast<int>(I) - Step : static_cast<int>(I))...);
  high = __builtin_shufflevector(
      low, high, ((I & Step) ? kWidth + static_cast<int>(I) : static_cast<int>(I) + Step)...);
  low = first;
}

template <int Step, class A>
inline void transpose_round(Vector<A>* rows) {
#pragma GCC unroll 16
  for (int i = 0; i < kLanes<A>; ++i) {
    if ((i & Step) == 0) {
      swap_blocks<Step>(rows[i], rows[i + Step], std::make_index_sequence<kLanes<A>>{});
    }
  }
  if constexpr (2 * Step < kLanes<A>) transpose_round<2 * Step, A>(rows);
}

// target[c][r] = source[r][c] for a block of rows x columns.
template <class A>
inline void transpose(const A* source, std::int64_t source_stride, A* target,
                      std::int64_t target_stride, std::int64_t rows, std::int64_t columns) {
  constexpr int kSide = kLanes<A>;
  const std::int64_t whole_rows = rows / kSide * kSide, whole_columns = columns / kSide * kSide;
  for (std::int64_t r = 0; r < whole_rows; r += kSide) {
    for (std::int64_t c = 0; c < whole_columns; c += kSide) {
      Vector<A> block[kSide];
#pragma GCC unroll 16
      for (int i = 0; i < kSide; ++i) block[i] = load_vector(source + (r + i) * source_stride + c);
      transpose_round<1, A>(block);
#pragma GCC unroll 16
      for (int i = 0; i < kSide; ++i) store_vector(target + (c + i) * target_stride + r, block[i]);
    }
  }
  for (std::int64_t r = 0; r < rows; ++r) {
    for (std::int64_t c = r < whole_rows ? whole_columns : 0; c < columns; ++c) {
      target[c * target_stride + r] = source[r * source_stride + c];
    }
  }
}

}  // namespace zl::cpu
