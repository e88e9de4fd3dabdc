// The checksum that a safetensors file holds of itself: the CRC32C of all its bytes, with zeros for
// the eight digits of the checksum itself.
// Ownership: values. Threads: pure functions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace zl {

// The metadata entry that holds it, and what stands there while it is computed.
inline constexpr const char* kChecksumName = "zerolab.crc32c";
inline constexpr const char* kNoDigits = "00000000";

// A file in short.
struct WrittenFile {
  std::int64_t bytes = -1;
  std::uint32_t checksum = 0;
};

// Eight hexadecimal digits.
std::string checksum_digits(std::uint32_t checksum);

// Of a header with kNoDigits, behind its length, and the data that follows.
WrittenFile file_of(const std::string& header, std::span<const std::span<const std::byte>> data);

// The header with other digits; unchanged where it has none.
std::string with_digits(std::string header, const std::string& digits);

}  // namespace zl
