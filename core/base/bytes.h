// Byte counts and rates as people write them: "16GiB", "256MB", "1048576"; "4.1Gbit", "12GB".
// Threads: pure functions.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace zl {

// Accepts an optional fraction and a unit out of B, KB, MB, GB, TB (powers of 1000) and KiB, MiB,
// GiB, TiB (powers of 1024). Throws Error{invalid} naming the text and the accepted units.
std::int64_t parse_bytes(std::string_view text);

// Bytes a second: a byte count ("12.5GB") or bits ("4.1Gbit", "100Mbit", "40Kbit", powers of 1000).
// Throws Error{invalid} naming the text and the accepted units.
double parse_bandwidth(std::string_view text);

// "1.50 GiB": binary unit, two decimals, no unit above 1024.
std::string format_bytes(std::int64_t bytes);

}  // namespace zl
