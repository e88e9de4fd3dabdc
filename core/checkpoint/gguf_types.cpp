#include "core/checkpoint/gguf_types.h"

#include <bit>
#include <cstring>

#include "core/base/dtype.h"
#include "core/base/error.h"

namespace zl {
namespace {

static_assert(std::endian::native == std::endian::little, "GGUF data is little-endian");

// Products and sums stand in statements of their own: a compiler may not fuse them into one
// rounding then.
using Bytes = const unsigned char*;

float half_at(Bytes at) {
  float16 half{};
  std::memcpy(&half.bits, at, sizeof half.bits);
  return to_float(half);
}

std::uint32_t word_at(Bytes at) {
  std::uint32_t word = 0;
  std::memcpy(&word, at, sizeof word);
  return word;
}

int low_nibble(unsigned char byte) { return byte & 15; }
int high_nibble(unsigned char byte) { return byte >> 4; }

void unpack_q4_0(Bytes block, float* out) {
  const float scale = half_at(block);
  for (int k = 0; k < 16; ++k) {
    const unsigned char byte = block[2 + k];
    out[k] = scale * static_cast<float>(low_nibble(byte) - 8);
    out[k + 16] = scale * static_cast<float>(high_nibble(byte) - 8);
  }
}

void unpack_q4_1(Bytes block, float* out) {
  const float scale = half_at(block), least = half_at(block + 2);
  for (int k = 0; k < 16; ++k) {
    const unsigned char byte = block[4 + k];
    const float low = scale * static_cast<float>(low_nibble(byte));
    const float high = scale * static_cast<float>(high_nibble(byte));
    out[k] = low + least;
    out[k + 16] = high + least;
  }
}

// The fifth bits of 32 elements stand in one word.
int with_fifth_bit(int nibble, std::uint32_t bits, int element) {
  return nibble | static_cast<int>((bits >> element & 1u) << 4);
}

void unpack_q5_0(Bytes block, float* out) {
  const float scale = half_at(block);
  const std::uint32_t bits = word_at(block + 2);
  for (int k = 0; k < 16; ++k) {
    const unsigned char byte = block[6 + k];
    out[k] = scale * static_cast<float>(with_fifth_bit(low_nibble(byte), bits, k) - 16);
    out[k + 16] = scale * static_cast<float>(with_fifth_bit(high_nibble(byte), bits, k + 16) - 16);
  }
}

void unpack_q5_1(Bytes block, float* out) {
  const float scale = half_at(block), least = half_at(block + 2);
  const std::uint32_t bits = word_at(block + 4);
  for (int k = 0; k < 16; ++k) {
    const unsigned char byte = block[8 + k];
    const float low = scale * static_cast<float>(with_fifth_bit(low_nibble(byte), bits, k));
    const float high = scale * static_cast<float>(with_fifth_bit(high_nibble(byte), bits, k + 16));
    out[k] = low + least;
    out[k + 16] = high + least;
  }
}

void unpack_q8_0(Bytes block, float* out) {
  const float scale = half_at(block);
  for (int k = 0; k < 32; ++k) {
    out[k] = scale * static_cast<float>(static_cast<signed char>(block[2 + k]));
  }
}

struct SubBlock {
  float scale, least;
};

// Of sub-block j of 8: six bits of scale and of minimum, packed into twelve bytes.
SubBlock sub_block(Bytes block, int j) {
  const float scale = half_at(block), least = half_at(block + 2);
  const Bytes s = block + 4;
  const int scales = j < 4 ? s[j] & 63 : (s[j + 4] & 15) | (s[j - 4] >> 6) << 4;
  const int minima = j < 4 ? s[j + 4] & 63 : (s[j + 4] >> 4) | (s[j] >> 6) << 4;
  return {scale * static_cast<float>(scales), least * static_cast<float>(minima)};
}

// Q4_K, and with `fifth` bits Q5_K.
void unpack_k(Bytes block, Bytes fifth, Bytes nibbles, float* out) {
  for (int j = 0; j < 8; ++j) {
    const SubBlock sub = sub_block(block, j);
    for (int k = 0; k < 32; ++k) {
      const unsigned char byte = nibbles[32 * (j / 2) + k];
      int n = j % 2 == 0 ? low_nibble(byte) : high_nibble(byte);
      if (fifth != nullptr) n |= (fifth[k] >> j & 1) << 4;
      const float product = sub.scale * static_cast<float>(n);
      out[32 * j + k] = product - sub.least;
    }
  }
}

void unpack_q4_k(Bytes block, float* out) { unpack_k(block, nullptr, block + 16, out); }
void unpack_q5_k(Bytes block, float* out) { unpack_k(block, block + 16, block + 48, out); }

void unpack_q6_k(Bytes block, float* out) {
  const float scale = half_at(block + 208);
  for (int half = 0; half < 2; ++half) {
    const Bytes low = block + 64 * half, high = block + 128 + 32 * half;
    for (int quarter = 0; quarter < 4; ++quarter) {
      for (int k = 0; k < 32; ++k) {
        const unsigned char byte = low[32 * (quarter % 2) + k];
        const int nibble = quarter < 2 ? low_nibble(byte) : high_nibble(byte);
        const int q = nibble | (high[k] >> 2 * quarter & 3) << 4;
        const auto local = static_cast<signed char>(block[192 + 8 * half + 2 * quarter + k / 16]);
        const float product = scale * static_cast<float>(local);
        out[128 * half + 32 * quarter + k] = product * static_cast<float>(q - 32);
      }
    }
  }
}

void unpack_f32(Bytes block, float* out) { std::memcpy(out, block, sizeof *out); }
void unpack_f16(Bytes block, float* out) { *out = half_at(block); }

void unpack_bf16(Bytes block, float* out) {
  bfloat16 value{};
  std::memcpy(&value.bits, block, sizeof value.bits);
  *out = to_float(value);
}

using Unpack = void (*)(Bytes block, float* out);

struct TypeRow {
  std::uint32_t type;
  const char* name;
  GgufBlock block;
  Unpack unpack;
};

constexpr TypeRow kTypes[] = {{0, "F32", {1, 4}, unpack_f32},
                              {1, "F16", {1, 2}, unpack_f16},
                              {2, "Q4_0", {32, 18}, unpack_q4_0},
                              {3, "Q4_1", {32, 20}, unpack_q4_1},
                              {6, "Q5_0", {32, 22}, unpack_q5_0},
                              {7, "Q5_1", {32, 24}, unpack_q5_1},
                              {8, "Q8_0", {32, 34}, unpack_q8_0},
                              {12, "Q4_K", {256, 144}, unpack_q4_k},
                              {13, "Q5_K", {256, 176}, unpack_q5_k},
                              {14, "Q6_K", {256, 210}, unpack_q6_k},
                              {30, "BF16", {1, 2}, unpack_bf16},
                              {9, "Q8_1", {}, nullptr},
                              {10, "Q2_K", {}, nullptr},
                              {11, "Q3_K", {}, nullptr},
                              {15, "Q8_K", {}, nullptr},
                              {16, "IQ2_XXS", {}, nullptr},
                              {17, "IQ2_XS", {}, nullptr},
                              {18, "IQ3_XXS", {}, nullptr},
                              {19, "IQ1_S", {}, nullptr},
                              {20, "IQ4_NL", {}, nullptr},
                              {21, "IQ3_S", {}, nullptr},
                              {22, "IQ2_S", {}, nullptr},
                              {23, "IQ4_XS", {}, nullptr},
                              {24, "I8", {}, nullptr},
                              {25, "I16", {}, nullptr},
                              {26, "I32", {}, nullptr},
                              {27, "I64", {}, nullptr},
                              {28, "F64", {}, nullptr},
                              {29, "IQ1_M", {}, nullptr},
                              {34, "TQ1_0", {}, nullptr},
                              {35, "TQ2_0", {}, nullptr},
                              {39, "MXFP4", {}, nullptr},
                              {40, "NVFP4", {}, nullptr}};

const TypeRow* row_of_type(std::uint32_t type) {
  for (const TypeRow& row : kTypes) {
    if (row.type == type) return &row;
  }
  return nullptr;
}

}  // namespace

GgufBlock gguf_block(std::uint32_t type) {
  const TypeRow* row = row_of_type(type);
  return row == nullptr ? GgufBlock{} : row->block;
}

std::string gguf_type_name(std::uint32_t type) {
  const TypeRow* row = row_of_type(type);
  return row == nullptr ? "type " + std::to_string(type) : row->name;
}

void dequantize_gguf(GgufType type, std::span<const std::byte> blocks, std::span<float> out) {
  const TypeRow* row = row_of_type(static_cast<std::uint32_t>(type));
  ZL_CHECK(row != nullptr && row->unpack != nullptr, "a type that gguf_block() does not read");
  const auto bytes = static_cast<std::size_t>(row->block.bytes);
  const auto elements = static_cast<std::size_t>(row->block.elements);
  const std::size_t count = blocks.size() / bytes;
  ZL_CHECK(blocks.size() % bytes == 0 && out.size() == count * elements, "blocks without room");
  for (std::size_t i = 0; i < count; ++i) {
    row->unpack(reinterpret_cast<Bytes>(blocks.data()) + i * bytes, out.data() + i * elements);
  }
}

}  // namespace zl
