// Eight-bit blocks: a thread takes whole blocks, piece by piece of at most kBlock elements.
#include <bit>
#include <cmath>
#include <limits>

#include "backends/cpu/ops/blocks.h"
#include "core/ops/quantize.h"

namespace zl::cpu {
namespace {

constexpr float kLargest = 127.0f;

// fn(row, first column, length, block of the row) for every block, over the rank's threads.
template <class F>
void for_quantized_blocks(const ExecContext& context, const TensorView& q, std::int64_t block,
                          F&& fn) {
  const std::int64_t columns = q.columns(), blocks = blocks_of(columns, block);
  const std::int64_t grain = rows_worth_a_thread(block);
  parallel_for(context, q.rows() * blocks, grain, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      const std::int64_t first = i % blocks * block;
      fn(i / blocks, first, std::min(block, columns - first), i % blocks);
    }
  });
}

// fn(offset, length) for pieces that fit a buffer of kBlock elements.
template <class F>
void for_pieces(std::int64_t length, F&& fn) {
  for (std::int64_t at = 0; at < length; at += kBlock) fn(at, std::min(kBlock, length - at));
}

// Bit patterns of magnitudes order as the values do, with infinity and NaN above all finite ones.
std::uint32_t largest_bits(const float* values, std::int64_t count) {
  std::uint32_t largest = 0;
  for (std::int64_t i = 0; i < count; ++i) {
    largest = std::max(largest, std::bit_cast<std::uint32_t>(values[i]) & 0x7fffffffu);
  }
  return largest;
}

void add_signed(const std::int8_t* __restrict q, std::int64_t count, float scale,
                float* __restrict sums) {
  for (std::int64_t i = 0; i < count; ++i) sums[i] += static_cast<float>(q[i]) * scale;
}

}  // namespace

void execute(const BlockQuantize& op, const ExecContext& context) {
  with_float_type(op.x.dtype, op.kName, [](auto) {});
  const std::int64_t columns = op.q.columns(), blocks = op.scales.columns();
  for_quantized_blocks(
      context, op.q, op.block,
      [&](std::int64_t row, std::int64_t first, std::int64_t length, std::int64_t block) {
        float buffer[kBlock];
        const std::int64_t start = row * columns + first;
        std::uint32_t bits = 0;
        for_pieces(length, [&](std::int64_t at, std::int64_t count) {
          bits = std::max(bits, largest_bits(load(op.x, start + at, count, buffer), count));
        });
        const auto largest = std::bit_cast<float>(bits);
        const bool finite = largest <= std::numeric_limits<float>::max();
        const float inverse = finite && largest > 0 ? kLargest / largest : 0.0f;
        op.scales.as<float>()[row * blocks + block] =
            finite ? largest / kLargest : std::numeric_limits<float>::infinity();
        for_pieces(length, [&](std::int64_t at, std::int64_t count) {
          const float* x = load(op.x, start + at, count, buffer);
          auto* q = op.q.as<std::int8_t>() + start + at;
          for (std::int64_t i = 0; i < count; ++i) {
            q[i] = finite ? static_cast<std::int8_t>(std::nearbyint(x[i] * inverse)) : 0;
          }
        });
      });
}

void execute(const BlockDequantize& op, const ExecContext& context) {
  with_float_type(op.y.dtype, op.kName, [](auto) {});
  const std::int64_t columns = op.q.columns(), blocks = op.scales.columns();
  for_quantized_blocks(
      context, op.q, op.block,
      [&](std::int64_t row, std::int64_t first, std::int64_t length, std::int64_t block) {
        const std::int64_t start = row * columns + first;
        const float scale = op.scales.as<const float>()[row * blocks + block];
        for_pieces(length, [&](std::int64_t at, std::int64_t count) {
          float values[kBlock] = {};
          add_signed(op.q.as<const std::int8_t>() + start + at, count, scale, values);
          store(op.y, start + at, count, values);
        });
      });
}

void execute(const BlockSum& op, const ExecContext& context) {
  with_float_type(op.out.dtype, op.kName, [](auto) {});
  const std::int64_t columns = op.q.columns(), blocks = op.scales.columns();
  const TensorView one_row = op.q.row_range(0, 1);
  for_quantized_blocks(
      context, one_row, op.block,
      [&](std::int64_t, std::int64_t first, std::int64_t length, std::int64_t block) {
        for_pieces(length, [&](std::int64_t at, std::int64_t count) {
          float sums[kBlock] = {};
          for (std::int64_t row = 0; row < op.q.rows(); ++row) {
            const float scale = op.scales.as<const float>()[row * blocks + block];
            add_signed(op.q.as<const std::int8_t>() + row * columns + first + at, count, scale,
                       sums);
          }
          for (std::int64_t i = 0; i < count; ++i) sums[i] *= op.factor;
          store(op.out, first + at, count, sums, op.accumulate);
        });
      });
}

}  // namespace zl::cpu
