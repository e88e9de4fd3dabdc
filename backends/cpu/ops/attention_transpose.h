// Granules of 16 rows of one head, transposed as they are loaded. Ownership: nothing. Threads: pure
// functions of their arguments.
#pragma once

#include "backends/cpu/ops/attention_blocks.h"

namespace zl::cpu {

#if defined(__AVX512F__)
// Of every quarter of two vectors its first half (Half 0) or its second: of each in turn runs of
// Run elements.
template <int Half, int Run, std::size_t... I>
[[gnu::always_inline]] inline Vector<float> interleaved(Vector<float> a, Vector<float> b,
                                                        std::index_sequence<I...>) {
  constexpr auto from = [](std::size_t i) {
    const std::size_t element = i / 4 * 4 + 2 * Half + (Run == 2 ? i % 2 : i % 4 / 2);
    return static_cast<int>(element + (i / Run % 2) * kLanes<float>);
  };
  return __builtin_shufflevector(a, b, from(I)...);
}
template <int Half, int Run>
[[gnu::always_inline]] inline Vector<float> interleaved(Vector<float> a, Vector<float> b) {
  return interleaved<Half, Run>(a, b, std::make_index_sequence<kLanes<float>>{});
}

// columns[c][r] = element c of row r of 16 x 16 elements of 32 bits, rows `step` bytes apart.
// Quarters of rows are loaded to where they belong, so that half of the exchanges are left.
[[gnu::always_inline]] inline void load_columns(const void* rows, std::int64_t step,
                                                Vector<float>* columns) {
  const auto* first = static_cast<const std::byte*>(rows);
#pragma GCC unroll 4
  for (std::int64_t c = 0; c < 16; c += 4) {
    Vector<float> of[4];  // in quarter q that of row r + 4 q
#pragma GCC unroll 4
    for (std::int64_t r = 0; r < 4; ++r) {
      const auto quarter = [&](std::int64_t q) {
        return _mm_loadu_ps(reinterpret_cast<const float*>(first + (r + 4 * q) * step) + c);
      };
      of[r] = _mm512_maskz_broadcast_f32x4(0xffff, quarter(0));
      of[r] = _mm512_mask_broadcast_f32x4(of[r], 0x00f0, quarter(1));
      of[r] = _mm512_mask_broadcast_f32x4(of[r], 0x0f00, quarter(2));
      of[r] = _mm512_mask_broadcast_f32x4(of[r], 0xf000, quarter(3));
    }
    const Vector<float> begins[2] = {interleaved<0, 1>(of[0], of[1]),
                                     interleaved<0, 1>(of[2], of[3])};
    const Vector<float> ends[2] = {interleaved<1, 1>(of[0], of[1]),
                                   interleaved<1, 1>(of[2], of[3])};
    columns[c] = interleaved<0, 2>(begins[0], begins[1]);
    columns[c + 1] = interleaved<1, 2>(begins[0], begins[1]);
    columns[c + 2] = interleaved<0, 2>(ends[0], ends[1]);
    columns[c + 3] = interleaved<1, 2>(ends[0], ends[1]);
  }
}
#endif

// Columns that are transposed at once; those of bf16 in pairs.
template <class T, class A>
inline constexpr std::int64_t kAtOnce = kLanes<A>*(std::is_same_v<T, bfloat16>&& kVectorBytes == 64
                                                       ? 2
                                                       : 1);

// to[kAtOnce][kGranule] = factor * a granule of rows that are `step` elements apart.
template <class T, class A, class Factor>
[[gnu::always_inline]] inline void transpose_some(const T* from, std::int64_t step, Factor factor,
                                                  A* to) {
  constexpr std::int64_t kSide = kLanes<A>;
  const auto put = [&](std::int64_t column, std::int64_t row, Vector<A> values) {
    store_vector(to + column * kGranule + row, scaled(factor, values));
  };
#if defined(__AVX512F__)
  if constexpr (std::is_same_v<T, float> || std::is_same_v<T, bfloat16>) {
    Vector<float> columns[kSide];
    load_columns(from, step * static_cast<std::int64_t>(sizeof(T)), columns);
#pragma GCC unroll 16
    for (std::int64_t i = 0; i < kSide; ++i) {
      if constexpr (std::is_same_v<T, float>) {
        put(i, 0, columns[i]);
      } else {
        const auto pair = std::bit_cast<Vector<std::uint32_t>>(columns[i]);
        put(2 * i, 0, std::bit_cast<Vector<float>>(pair << 16));
        put(2 * i + 1, 0, std::bit_cast<Vector<float>>(pair & 0xffff0000u));
      }
    }
    return;
  }
#endif
  for (std::int64_t r = 0; r < kGranule; r += kSide) {
    Vector<A> block[kSide];
#pragma GCC unroll 16
    for (std::int64_t i = 0; i < kSide; ++i) block[i] = load_widened<A>(from + (r + i) * step);
    transpose_round<1, A>(block);
#pragma GCC unroll 16
    for (std::int64_t i = 0; i < kSide; ++i) put(i, r, block[i]);
  }
}

// to[width][kGranule] = factor * a granule of rows of one head, transposed.
template <class T, class A, class Factor>
void load_transposed(const HeadColumns& head, std::int64_t row, std::int64_t width, Factor factor,
                     A* to) {
  const std::int64_t step = head.row_width;
  const T* from = head.matrix.as<const T>() + row * step + head.first;
  std::int64_t d = 0;
  for (; d + kAtOnce<T, A> <= width; d += kAtOnce<T, A>) {
    transpose_some(from + d, step, factor, to + d * kGranule);
  }
  for (; d < width; ++d) {
    for (std::int64_t r = 0; r < kGranule; ++r) {
      to[d * kGranule + r] = scaled(factor, widen<A>(from[r * step + d]));
    }
  }
}

}  // namespace zl::cpu
