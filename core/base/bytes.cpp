#include "core/base/bytes.h"

#include <array>
#include <cctype>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <utility>

#include "core/base/error.h"

namespace zl {
namespace {

constexpr std::array<std::pair<std::string_view, double>, 10> kUnits{{{"", 1},
                                                                      {"b", 1},
                                                                      {"kb", 1e3},
                                                                      {"mb", 1e6},
                                                                      {"gb", 1e9},
                                                                      {"tb", 1e12},
                                                                      {"kib", 0x1p10},
                                                                      {"mib", 0x1p20},
                                                                      {"gib", 0x1p30},
                                                                      {"tib", 0x1p40}}};

}  // namespace

std::int64_t parse_bytes(std::string_view text) {
  double number = 0;
  const auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), number);
  std::string unit;
  for (const char* c = end; c != text.data() + text.size(); ++c) {
    if (*c != ' ') unit += static_cast<char>(std::tolower(static_cast<unsigned char>(*c)));
  }
  for (const auto& [name, scale] : kUnits) {
    if (status == std::errc() && number >= 0 && unit == name && number * scale < 0x1p62) {
      return static_cast<std::int64_t>(std::llround(number * scale));
    }
  }
  throw Error(ErrorCode::invalid, "'" + std::string(text) +
                                      "' is not a byte count; write for example 256MiB, 16GiB, "
                                      "40GB (units B, KB, MB, GB, TB, KiB, MiB, GiB, TiB)");
}

std::string format_bytes(std::int64_t bytes) {
  constexpr std::array<const char*, 6> kNames{"B", "KiB", "MiB", "GiB", "TiB", "PiB"};
  double value = static_cast<double>(bytes);
  std::size_t unit = 0;
  while (std::fabs(value) >= 1024 && unit + 1 < kNames.size()) {
    value /= 1024;
    ++unit;
  }
  char buffer[48];
  std::snprintf(buffer, sizeof buffer, unit == 0 ? "%.0f %s" : "%.2f %s", value, kNames[unit]);
  return buffer;
}

}  // namespace zl
