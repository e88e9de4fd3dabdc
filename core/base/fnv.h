// FNV-1a of 64 bits (draft-eastlake-fnv): a digest of values and text that is the same on every
// machine. Not for secrets. Ownership: a value. Threads: as an int.
#pragma once

#include <cstdint>
#include <string_view>

namespace zl {

class Fnv1a {
 public:
  // The eight bytes of the value, the lowest first.
  constexpr void add(std::uint64_t value) {
    for (int byte = 0; byte < 8; ++byte) add_byte(static_cast<unsigned char>(value >> (8 * byte)));
  }
  constexpr void add(std::string_view text) {
    for (const char each : text) add_byte(static_cast<unsigned char>(each));
  }
  constexpr std::uint64_t value() const { return hash_; }

 private:
  constexpr void add_byte(unsigned char byte) { hash_ = (hash_ ^ byte) * 0x100000001b3u; }

  std::uint64_t hash_ = 0xcbf29ce484222325u;
};

}  // namespace zl
