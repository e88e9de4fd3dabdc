// The element types of GGUF files and what their blocks mean.
// Ownership: none. Threads: pure functions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace zl {

// Of what zerolab reads; the values are the file's.
enum class GgufType : std::uint32_t {
  f32 = 0,
  f16 = 1,
  q4_0 = 2,
  q4_1 = 3,
  q5_0 = 6,
  q5_1 = 7,
  q8_0 = 8,
  q4_k = 12,
  q5_k = 13,
  q6_k = 14,
  bf16 = 30
};

struct GgufBlock {
  std::int64_t elements = 1;
  std::int64_t bytes = 0;  // 0: zerolab does not read this type
};

GgufBlock gguf_block(std::uint32_t type);

// "Q4_K"; of numbers without a type "type 99".
std::string gguf_type_name(std::uint32_t type);

// Blocks as numbers, in fp32 with the roundings of the reference (package gguf, quants.py).
// `blocks` holds whole blocks of the type, `out` has room for their elements.
void dequantize_gguf(GgufType type, std::span<const std::byte> blocks, std::span<float> out);

}  // namespace zl
