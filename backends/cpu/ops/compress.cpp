// Packing and unpacking of signs, 32 elements at a time: a word of four packed bytes.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <span>
#include <vector>

#include "backends/cpu/ops/blocks.h"
#include "backends/cpu/ops/vector.h"
#include "core/ops/compress.h"

namespace zl::cpu {
namespace {

constexpr std::int64_t kByteBlock = kBlock / 8;  // packed bytes of a block of elements
constexpr std::int64_t kWord = 4;                // bytes
constexpr int kWidth = kLanes<float>;

// Bit of a byte that holds its i-th element.
constexpr unsigned bit_of(std::int64_t i) { return 1u << (7 - i); }

// Bit of a word (as it lies in memory, read as a little-endian integer) that holds element i.
constexpr auto kSelect = [] {
  std::array<std::uint32_t, 8 * kWord> select{};
  for (std::size_t i = 0; i < select.size(); ++i) {
    select[i] = bit_of(static_cast<std::int64_t>(i % 8)) << (i / 8 * 8);
  }
  return select;
}();

std::uint32_t load_word(const std::uint8_t* packed) {
  std::uint32_t word = 0;
  std::memcpy(&word, packed, kWord);
  return word;
}

// The word's elements from `first` on: plus where the bit is set, minus elsewhere.
Vector<float> choose(std::uint32_t word, int first, Vector<float> plus, Vector<float> minus) {
  const auto bits = broadcast(word) & load_vector(kSelect.data() + first);
  return bits != 0 ? plus : minus;
}

// Signs of `length` <= 8 elements; takes the signs' share away from them.
std::uint8_t compress_some(float* x, std::int64_t length, float scale) {
  unsigned byte = 0;
  for (std::int64_t i = 0; i < length; ++i) {
    const bool positive = x[i] >= 0;
    if (positive) byte |= bit_of(i);
    x[i] -= positive ? scale : -scale;
  }
  return static_cast<std::uint8_t>(byte);
}

#if defined(__AVX__)
// Bit i: whether element i of a vector is at least 0.
std::uint32_t signs_of(Vector<float> x) {
#if defined(__AVX512F__)
  return _mm512_cmp_ps_mask(x, _mm512_setzero_ps(), _CMP_GE_OQ);
#else
  const __m256 positive = _mm256_cmp_ps(x, _mm256_setzero_ps(), _CMP_GE_OQ);
  return static_cast<std::uint32_t>(_mm256_movemask_ps(positive));
#endif
}

// The other order of bits in each byte.
std::uint32_t reverse_bytes_bits(std::uint32_t word) {
  word = (word >> 1 & 0x55555555u) | (word & 0x55555555u) << 1;
  word = (word >> 2 & 0x33333333u) | (word & 0x33333333u) << 2;
  return (word >> 4 & 0x0f0f0f0fu) | (word & 0x0f0f0f0fu) << 4;
}

void compress_words(float* x, std::uint8_t* packed, std::int64_t words, float scale) {
  static_assert(Ahead::kFetch == 8 * kWord);
  const Vector<float> plus = broadcast(scale), minus = -plus, zero{};
  const Ahead ahead(x);
  for (std::int64_t i = 0; i < words; ++i, x += 8 * kWord) {
    ahead.fetch(8 * kWord * i);
    std::uint32_t word = 0;
#pragma GCC unroll 4
    for (int first = 0; first < 8 * kWord; first += kWidth) {
      const Vector<float> value = load_vector(x + first);
      word |= signs_of(value) << first;
      store_vector(x + first, value - (value >= zero ? plus : minus));
    }
    word = reverse_bytes_bits(word);
    std::memcpy(packed + kWord * i, &word, kWord);
  }
}
#else
void compress_words(float* x, std::uint8_t* packed, std::int64_t words, float scale) {
  for (std::int64_t i = 0; i < kWord * words; ++i) packed[i] = compress_some(x + 8 * i, 8, scale);
}
#endif

// x -> signs and remainders, of any number of elements.
void compress_block(float* x, std::int64_t real, std::uint8_t* packed, std::int64_t bytes,
                    float scale) {
  const std::int64_t words = real / (8 * kWord);
  compress_words(x, packed, words, scale);
  for (std::int64_t i = kWord * words; i < bytes; ++i) {
    packed[i] = compress_some(x + 8 * i, std::clamp<std::int64_t>(real - 8 * i, 0, 8), scale);
  }
}

// out[count] = +- scale for each sign.
void unpack(const std::uint8_t* packed, std::int64_t count, float scale, float* out) {
  const Vector<float> plus = broadcast(scale), minus = -plus;
  const std::int64_t whole = count / (8 * kWord) * (8 * kWord);
  for (std::int64_t i = 0; i < whole; i += 8 * kWord) {
    const std::uint32_t word = load_word(packed + i / 8);
#pragma GCC unroll 8
    for (int first = 0; first < 8 * kWord; first += kWidth) {
      store_vector(out + i + first, choose(word, first, plus, minus));
    }
  }
  for (std::int64_t i = whole; i < count; ++i) {
    out[i] = packed[i / 8] & bit_of(i % 8) ? scale : -scale;
  }
}

// out[i] += share * (the sum over rows, `stride` bytes apart, of each one's sign times its scale).
void add_average(const std::uint8_t* packed, std::int64_t stride, std::span<const float> scales,
                 float share, std::int64_t count, float* out) {
  constexpr int kVectors = 8 * kWord / kWidth;
  const std::int64_t whole = count / (8 * kWord) * (8 * kWord);
  const Ahead ahead(out);
  for (std::int64_t i = 0; i < whole; i += 8 * kWord) {
    ahead.fetch(i);
    Vector<float> sums[kVectors] = {};
    for (std::size_t row = 0; row < scales.size(); ++row) {
      const std::uint32_t word =
          load_word(packed + static_cast<std::int64_t>(row) * stride + i / 8);
      const Vector<float> plus = broadcast(scales[row]), minus = -plus;
#pragma GCC unroll 8
      for (int v = 0; v < kVectors; ++v) sums[v] += choose(word, v * kWidth, plus, minus);
    }
    float word_sums[8 * kWord];
    std::memcpy(word_sums, sums, sizeof(word_sums));
    for (std::int64_t j = 0; j < 8 * kWord; ++j) {
      out[i + j] = std::fma(word_sums[j], share, out[i + j]);
    }
  }
  for (std::int64_t i = whole; i < count; ++i) {
    float sum = 0;
    for (std::size_t row = 0; row < scales.size(); ++row) {
      const bool plus = packed[static_cast<std::int64_t>(row) * stride + i / 8] & bit_of(i % 8);
      sum += plus ? scales[row] : -scales[row];
    }
    out[i] = std::fma(sum, share, out[i]);
  }
}

// fn(row, first byte, bytes) for blocks of the packed bytes of all rows; a block lies in one row.
template <class F>
void for_row_blocks(const ExecContext& context, std::int64_t rows, std::int64_t row_bytes, F&& fn) {
  const std::int64_t blocks = (row_bytes + kByteBlock - 1) / kByteBlock;
  parallel_for(context, rows * blocks, kGrain / kBlock, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t block = begin; block < end; ++block) {
      const std::int64_t first = block % blocks * kByteBlock;
      fn(block / blocks, first, std::min(kByteBlock, row_bytes - first));
    }
  });
}

// How many of the elements from `first` of a row are real, at most `length`.
std::int64_t real_elements(std::int64_t count, std::int64_t columns, std::int64_t row,
                           std::int64_t first, std::int64_t length) {
  const std::int64_t in_row = std::min(columns, count - row * columns);
  return std::clamp<std::int64_t>(in_row - first, 0, length);
}

}  // namespace

void execute(const SignCompress& op, const ExecContext& context) {
  const double* square = op.square.as<const double>();
  const auto scale =
      static_cast<float>(std::sqrt((square[0] + square[1]) / static_cast<double>(op.square_count)));
  *op.scale.as<float>() = scale;
  const std::int64_t columns = op.x.columns(), row_bytes = packed_bytes(columns);
  for_row_blocks(context, op.x.rows(), row_bytes,
                 [&](std::int64_t row, std::int64_t first, std::int64_t bytes) {
                   const std::int64_t real =
                       real_elements(op.count, columns, row, 8 * first, 8 * bytes);
                   float* x = op.x.as<float>() + row * columns + 8 * first;
                   auto* packed = op.packed.as<std::uint8_t>() + row * row_bytes + first;
                   compress_block(x, real, packed, bytes, scale);
                 });
}

void execute(const SignAverage& op, const ExecContext& context) {
  const std::int64_t rows = op.packed.rows(), row_bytes = op.packed.columns();
  const auto* packed = op.packed.as<const std::uint8_t>();
  const float share = 1.0f / static_cast<float>(rows);
  std::vector<float> scales;
  for (std::int64_t row = 0; row < rows; ++row) {
    scales.push_back(op.scales.as<const float>()[row * op.scales.columns() + op.column]);
  }
  for_row_blocks(context, 1, row_bytes, [&](std::int64_t, std::int64_t first, std::int64_t bytes) {
    const std::int64_t real = real_elements(op.count, op.count, 0, 8 * first, 8 * bytes);
    add_average(packed + first, row_bytes, scales, share, real, op.out.as<float>() + 8 * first);
  });
}

void execute(const SignUnpack& op, const ExecContext& context) {
  const std::int64_t columns = op.out.columns(), row_bytes = op.packed.columns();
  const float* scales = op.scales.as<const float>() + op.column;
  for_row_blocks(
      context, op.out.rows(), row_bytes,
      [&](std::int64_t row, std::int64_t first, std::int64_t bytes) {
        const std::int64_t length = std::min(8 * bytes, columns - 8 * first);
        const std::int64_t real = real_elements(op.count, columns, row, 8 * first, length);
        const auto* packed = op.packed.as<const std::uint8_t>() + row * row_bytes + first;
        float* out = op.out.as<float>() + row * columns + 8 * first;
        unpack(packed, real, scales[row * op.scales.columns()], out);
        std::fill(out + real, out + length, 0.0f);
      });
}

}  // namespace zl::cpu
