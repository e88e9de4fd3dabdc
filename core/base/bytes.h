// Byte counts and rates as people write them: "16GiB", "256MB"; "4.1Gbit", "12GB". Always with a
// unit: who writes 80 means 80GiB, and not 80 bytes. Threads: pure functions.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace zl {

// Accepts an optional fraction and a unit out of B, KB, MB, GB, TB (powers of 1000) and KiB, MiB,
// GiB, TiB (powers of 1024); 0 needs none. Throws Error{invalid} naming the text and the accepted
// units, of a bare number also what it likely means.
std::int64_t parse_bytes(std::string_view text);

// Bytes a second: a byte count ("12.5GB") or bits ("4.1Gbit", "100Mbit", "40Kbit", powers of 1000).
// Throws Error{invalid} as parse_bytes.
double parse_bandwidth(std::string_view text);

// "8192", "8k": a whole number, of thousands (`kilo`: 1000 or 1024) behind a k or K, of their
// square behind an m or M. Throws Error{invalid} naming the text.
std::int64_t parse_count(std::string_view text, std::int64_t kilo);

// "1.50 GiB": binary unit, two decimals, no unit above 1024.
std::string format_bytes(std::int64_t bytes);

}  // namespace zl
