#include "core/base/bytes.h"

#include <array>
#include <cctype>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <utility>

#include "core/base/error.h"
#include "core/base/text.h"

namespace zl {
namespace {

constexpr std::array<std::pair<std::string_view, double>, 9> kUnits{{{"b", 1},
                                                                     {"kb", 1e3},
                                                                     {"mb", 1e6},
                                                                     {"gb", 1e9},
                                                                     {"tb", 1e12},
                                                                     {"kib", 0x1p10},
                                                                     {"mib", 0x1p20},
                                                                     {"gib", 0x1p30},
                                                                     {"tib", 0x1p40}}};

struct Quantity {
  double number = -1;  // negative: not one
  std::string unit;    // lower case
};

Quantity read_quantity(std::string_view text) {
  Quantity quantity;
  double number = 0;
  const auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (status == std::errc()) quantity.number = number;
  for (const char* c = end; c != text.data() + text.size(); ++c) {
    if (*c != ' ') quantity.unit += static_cast<char>(std::tolower(static_cast<unsigned char>(*c)));
  }
  return quantity;
}

// The quantity in bytes; negative: not a byte count.
double in_bytes(const Quantity& quantity) {
  for (const auto& [name, scale] : kUnits) {
    if (quantity.unit == name) return quantity.number * scale;
  }
  return -1;
}

// Throws where a number stands alone. `units`: of numbers below a thousand, of those below a
// million, and of the others; nobody counts a thousand of the first.
void require_unit(const Quantity& quantity, std::string_view text,
                  const std::array<const char*, 3>& units) {
  if (!(quantity.number > 0) || !quantity.unit.empty()) return;
  const char* unit = quantity.number < 1e3 ? units[0] : quantity.number < 1e6 ? units[1] : units[2];
  const std::string number = shortened(text);
  throw Error(ErrorCode::invalid, number + " has no unit; " + number + unit + "?");
}

}  // namespace

std::int64_t parse_bytes(std::string_view text) {
  const Quantity quantity = read_quantity(text);
  require_unit(quantity, text, {"GiB", "MiB", "B"});
  const double bytes = quantity.number == 0 && quantity.unit.empty() ? 0 : in_bytes(quantity);
  if (bytes >= 0 && bytes < 0x1p62) return static_cast<std::int64_t>(std::llround(bytes));
  throw Error(ErrorCode::invalid, "'" + shortened(text) +
                                      "' is not a byte count; write for example 256MiB, 16GiB, "
                                      "40GB (units B, KB, MB, GB, TB, KiB, MiB, GiB, TiB)");
}

double parse_bandwidth(std::string_view text) {
  Quantity quantity = read_quantity(text);
  require_unit(quantity, text, {"Gbit", "Mbit", "B"});
  constexpr std::string_view kBits = "bit";
  double rate = -1;
  if (quantity.unit.ends_with(kBits)) {
    quantity.unit.resize(quantity.unit.size() - kBits.size());
    quantity.unit += quantity.unit.ends_with('i') ? "?" : "b";  // no binary prefixes
    rate = in_bytes(quantity) / 8;
  } else {
    rate = in_bytes(quantity);
  }
  if (rate > 0 && rate < 1e18) return rate;
  throw Error(ErrorCode::invalid, "'" + shortened(text) +
                                      "' is not a bandwidth; write for example 4.1Gbit, 100Mbit, "
                                      "12.5GB (bits or bytes a second)");
}

std::int64_t parse_count(std::string_view text, std::int64_t kilo) {
  std::int64_t number = 0;
  const auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), number);
  const std::string_view rest = text.substr(static_cast<std::size_t>(end - text.data()));
  const std::int64_t scale = rest == "k" || rest == "K"   ? kilo
                             : rest == "m" || rest == "M" ? kilo * kilo
                                                          : 1;
  const bool known = rest.empty() || scale > 1;
  if (status == std::errc() && known && std::abs(number) <= INT64_MAX / scale) {
    return number * scale;
  }
  throw Error(ErrorCode::invalid,
              "\"" + shortened(text) + "\" is not a whole number, such as 8192 or 8k");
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
