// CRC32C (Castagnoli), the checksum of RFC 3720 and of most storage formats.
// Ownership: none. Threads: free to use from any.
#pragma once

#include <cstddef>
#include <cstdint>

namespace zl {

// Of `bytes` bytes; `crc` continues an earlier result. Uses the processor's instruction where there
// is one.
std::uint32_t crc32c(const std::byte* data, std::int64_t bytes, std::uint32_t crc = 0);
// The same from a table, for processors without the instruction.
std::uint32_t crc32c_portable(const std::byte* data, std::int64_t bytes, std::uint32_t crc = 0);

}  // namespace zl
