#include "core/base/crc32c.h"

#include <array>
#include <cstring>

#if defined(__SSE4_2__)
#include <nmmintrin.h>
#endif

namespace zl {
namespace {

constexpr std::uint32_t kPolynomial = 0x82f63b78;  // reflected

constexpr std::array<std::uint32_t, 256> make_table() {
  std::array<std::uint32_t, 256> table{};
  for (std::uint32_t i = 0; i < 256; ++i) {
    std::uint32_t value = i;
    for (int bit = 0; bit < 8; ++bit) value = (value >> 1) ^ (value & 1 ? kPolynomial : 0);
    table[i] = value;
  }
  return table;
}
constexpr std::array<std::uint32_t, 256> kTable = make_table();

std::uint32_t add_bytes(const std::byte* data, std::int64_t bytes, std::uint32_t state) {
  for (std::int64_t i = 0; i < bytes; ++i) {
    state = kTable[(state ^ static_cast<std::uint32_t>(data[i])) & 0xff] ^ (state >> 8);
  }
  return state;
}

#if defined(__SSE4_2__)

// state * x^(8 n) in the field, n the length of a lane: appends n zero bytes to a message.
class Shift {
 public:
  explicit constexpr Shift(std::int64_t bytes) {
    for (std::size_t byte = 0; byte < 4; ++byte) {
      for (std::uint32_t value = 0; value < 256; ++value) {
        std::uint32_t state = value << (8 * byte);
        for (std::int64_t i = 0; i < bytes; ++i) state = kTable[state & 0xff] ^ (state >> 8);
        table_[byte][value] = state;
      }
    }
  }
  std::uint32_t operator()(std::uint32_t state) const {
    return table_[0][state & 0xff] ^ table_[1][state >> 8 & 0xff] ^ table_[2][state >> 16 & 0xff] ^
           table_[3][state >> 24];
  }

 private:
  std::array<std::array<std::uint32_t, 256>, 4> table_{};
};

std::uint64_t word(const std::byte* data) {
  std::uint64_t value;
  std::memcpy(&value, data, sizeof value);
  return value;
}

// The instruction takes three cycles but one can start each cycle: three lanes hide that.
std::uint32_t add_lanes(const std::byte*& data, std::int64_t& bytes, std::uint32_t state) {
  constexpr std::int64_t kLane = 1024;
  static const Shift shift(kLane);
  for (; bytes >= 3 * kLane; bytes -= 3 * kLane, data += 3 * kLane) {
    std::uint64_t a = state, b = 0, c = 0;
    for (std::int64_t i = 0; i < kLane; i += 8) {
      a = _mm_crc32_u64(a, word(data + i));
      b = _mm_crc32_u64(b, word(data + kLane + i));
      c = _mm_crc32_u64(c, word(data + 2 * kLane + i));
    }
    state = shift(static_cast<std::uint32_t>(a)) ^ static_cast<std::uint32_t>(b);
    state = shift(state) ^ static_cast<std::uint32_t>(c);
  }
  return state;
}

#endif

}  // namespace

std::uint32_t crc32c_portable(const std::byte* data, std::int64_t bytes, std::uint32_t crc) {
  return ~add_bytes(data, bytes, ~crc);
}

std::uint32_t crc32c(const std::byte* data, std::int64_t bytes, std::uint32_t crc) {
#if defined(__SSE4_2__)
  std::uint32_t state = add_lanes(data, bytes, ~crc);
  for (; bytes >= 8; bytes -= 8, data += 8) {
    state = static_cast<std::uint32_t>(_mm_crc32_u64(state, word(data)));
  }
  return ~add_bytes(data, bytes, state);
#else
  return crc32c_portable(data, bytes, crc);
#endif
}

}  // namespace zl
