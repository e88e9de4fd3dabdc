// Packing and unpacking of signs, eight elements at a time.
#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <span>
#include <vector>

#include "backends/cpu/ops/blocks.h"
#include "backends/cpu/ops/vector.h"

namespace zl::cpu {
namespace {

constexpr std::int64_t kByteBlock = kBlock / 8;  // packed bytes of a block of elements

// The signs of a byte as +1 and -1, first element first.
constexpr auto kSigns = [] {
  std::array<std::array<float, 8>, 256> table{};
  for (std::size_t byte = 0; byte < 256; ++byte) {
    for (std::size_t i = 0; i < 8; ++i) table[byte][i] = (byte >> (7 - i)) & 1 ? 1.0f : -1.0f;
  }
  return table;
}();

constexpr auto kReversed = [] {
  std::array<std::uint8_t, 256> table{};
  for (unsigned byte = 0; byte < 256; ++byte) {
    for (unsigned i = 0; i < 8; ++i) {
      if ((byte >> i) & 1) table[byte] |= static_cast<std::uint8_t>(1u << (7 - i));
    }
  }
  return table;
}();

// Signs of `length` <= 8 elements; takes the signs' share away from them.
std::uint8_t compress_some(float* x, std::int64_t length, float scale) {
  unsigned byte = 0;
  for (std::int64_t i = 0; i < length; ++i) {
    const bool positive = x[i] >= 0;
    if (positive) byte |= 1u << (7 - i);
    x[i] -= positive ? scale : -scale;
  }
  return static_cast<std::uint8_t>(byte);
}

void compress_bytes(float* x, std::uint8_t* packed, std::int64_t bytes, float scale) {
#if defined(__AVX__)
  const __m256 plus = _mm256_set1_ps(scale), minus = _mm256_set1_ps(-scale);
  for (std::int64_t i = 0; i < bytes; ++i) {
    const __m256 value = _mm256_loadu_ps(x + 8 * i);
    const __m256 positive = _mm256_cmp_ps(value, _mm256_setzero_ps(), _CMP_GE_OQ);
    packed[i] = kReversed[static_cast<std::size_t>(_mm256_movemask_ps(positive))];
    _mm256_storeu_ps(x + 8 * i, _mm256_sub_ps(value, _mm256_blendv_ps(minus, plus, positive)));
  }
#else
  for (std::int64_t i = 0; i < bytes; ++i) packed[i] = compress_some(x + 8 * i, 8, scale);
#endif
}

// out = +- scale for each sign.
void unpack_bytes(const std::uint8_t* packed, std::int64_t bytes, float scale, float* out) {
  for (std::int64_t i = 0; i < bytes; ++i) {
    const float* signs = kSigns[packed[i]].data();
    for (std::int64_t j = 0; j < 8; ++j) out[8 * i + j] = scale * signs[j];
  }
}

// sums[8] = the sum over `scales` rows, `stride` bytes apart, of each one's signs times its scale.
void sum_byte(const std::uint8_t* packed, std::int64_t stride, std::span<const float> scales,
              float* sums) {
#if defined(__AVX__)
  __m256 sum = _mm256_setzero_ps();
  for (std::size_t row = 0; row < scales.size(); ++row, packed += stride) {
    const __m256 signs = _mm256_loadu_ps(kSigns[*packed].data());
    sum = _mm256_add_ps(sum, _mm256_mul_ps(signs, _mm256_set1_ps(scales[row])));
  }
  _mm256_storeu_ps(sums, sum);
#else
  std::fill_n(sums, 8, 0.0f);
  for (std::size_t row = 0; row < scales.size(); ++row, packed += stride) {
    const float* signs = kSigns[*packed].data();
    for (std::size_t j = 0; j < 8; ++j) sums[j] += scales[row] * signs[j];
  }
#endif
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
                   compress_bytes(x, packed, real / 8, scale);
                   for (std::int64_t i = real / 8; i < bytes; ++i) {
                     const auto rest = std::clamp<std::int64_t>(real - 8 * i, 0, 8);
                     packed[i] = compress_some(x + 8 * i, rest, scale);
                   }
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
    float* out = op.out.as<float>() + 8 * first;
    const std::int64_t real = real_elements(op.count, op.count, 0, 8 * first, 8 * bytes);
    for (std::int64_t i = 0; i < real; i += 8) {
      float sums[8];
      sum_byte(packed + first + i / 8, row_bytes, scales, sums);
      const std::int64_t length = std::min<std::int64_t>(8, real - i);
      for (std::int64_t j = 0; j < length; ++j) out[i + j] = std::fma(sums[j], share, out[i + j]);
    }
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
        const float scale = scales[row * op.scales.columns()];
        float* out = op.out.as<float>() + row * columns + 8 * first;
        unpack_bytes(packed, real / 8, scale, out);
        if (real % 8 != 0) {
          float last[8];
          unpack_bytes(packed + real / 8, 1, scale, last);
          std::copy_n(last, real % 8, out + real / 8 * 8);
        }
        std::fill(out + real, out + length, 0.0f);
      });
}

}  // namespace zl::cpu
