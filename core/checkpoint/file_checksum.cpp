#include "core/checkpoint/file_checksum.h"

#include "core/base/crc32c.h"

namespace zl {

std::string checksum_digits(std::uint32_t checksum) {
  std::string digits = kNoDigits;
  for (std::size_t i = digits.size(); i-- > 0; checksum >>= 4) {
    digits[i] = "0123456789abcdef"[checksum & 15];
  }
  return digits;
}

WrittenFile file_of(const std::string& header, std::span<const std::span<const std::byte>> data) {
  WrittenFile file{0, 0};
  const auto add = [&file](std::span<const std::byte> bytes) {
    const auto size = static_cast<std::int64_t>(bytes.size());
    file.checksum = crc32c(bytes.data(), size, file.checksum);
    file.bytes += size;
  };
  const std::uint64_t length = header.size();
  add(std::as_bytes(std::span(&length, 1)));
  add(std::as_bytes(std::span(header)));
  for (const auto& bytes : data) add(bytes);
  return file;
}

// Within a string of JSON the quotes of this text would be escaped: it can only be the entry.
std::string with_digits(std::string header, const std::string& digits) {
  const std::string before = '"' + std::string(kChecksumName) + "\":\"";
  const std::size_t place = header.find(before);
  if (place == std::string::npos) return header;
  return header.replace(place + before.size(), digits.size(), digits);
}

}  // namespace zl
