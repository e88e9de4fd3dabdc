#include "scenarios/cli/output.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "core/base/error.h"
#include "core/base/files.h"
#include "core/base/log.h"
#include "core/base/nearest.h"
#include "core/base/text.h"
#include "results/fitted.h"

namespace zl::cli {
namespace {

Cell cell_of(const Json& value) {
  if (value.is_null()) return std::monostate{};
  if (value.is_number_integer()) return value.get<std::int64_t>();
  if (value.is_number()) return value.get<double>();
  return value.is_string() ? value.get<std::string>() : to_text(value);
}

void add_leaves(const Json& value, const std::string& path, Table& table) {
  if (!value.is_structured() || value.empty()) {
    table.rows.push_back({path, cell_of(value)});
    return;
  }
  for (const auto& item : value.items()) {
    const std::string key =
        value.is_array() ? path + "[" + item.key() + "]" : child_path(path, item.key());
    add_leaves(item.value(), key, table);
  }
}

}  // namespace

void print(std::string_view raw) {
  const std::string text = visible(raw);
  const bool written = std::fwrite(text.data(), 1, text.size(), stdout) == text.size();
  if (!written || std::fflush(stdout) != 0) {
    throw Error(ErrorCode::failed, std::string("stdout: cannot write: ") + std::strerror(errno));
  }
}

void print_error(std::string_view message) {
  const std::string line = "zerolab: error: " + visible(message) + "\n";
  std::fwrite(line.data(), 1, line.size(), stderr);
}

std::string pretty(const Json& value) { return to_text(value, 2) + "\n"; }

std::size_t terminal_width() {
  constexpr std::size_t kLeast = 20;
  const char* columns = std::getenv("COLUMNS");
  std::size_t width = columns == nullptr ? 0 : std::strtoul(columns, nullptr, 10);
  winsize size{};
  if (width == 0 && isatty(STDOUT_FILENO) == 1 && ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0) {
    width = size.ws_col;
  }
  return width == 0 ? 0 : std::max(width, kLeast);
}

Table leaves(const Json& object) {
  Table table{{{"key", Align::left}, {.name = "value", .align = Align::left, .is_prose = true}},
              {}};
  add_leaves(object, "", table);
  return table;
}

namespace {

std::string in_unit(const std::string& key, double value) {
  const auto has = [&key](const char* part) { return key.find(part) != std::string::npos; };
  if (has("bandwidth") || key.ends_with("bytes_per_second"))
    return readable(value, Unit::byte_rate);
  if (has("peak_flops")) return readable(value, Unit::flop_rate);
  if (key.ends_with("flops_per_token")) {
    const std::string rate = readable(value, Unit::flop_rate);
    return rate.substr(0, rate.size() - 2);  // FLOP
  }
  if (has("efficiency") || has("spread") || has("_error")) return readable(value, Unit::fraction);
  if (has("_seconds")) return readable(value, Unit::seconds);
  const bool bytes = has("memory") || key.starts_with("bytes") || key.ends_with("workspace");
  return bytes ? readable(value, Unit::bytes) : "";
}

}  // namespace

void name_units(Table& table) {
  for (auto& row : table.rows) {
    const std::string key = std::get<std::string>(row[0]);
    double value = 0;
    if (const auto* number = std::get_if<double>(&row[1])) {
      value = *number;
    } else if (const auto* whole = std::get_if<std::int64_t>(&row[1])) {
      value = static_cast<double>(*whole);
    } else {
      continue;
    }
    const std::string text = in_unit(key, value);
    if (!text.empty()) row[1] = text;
  }
}

std::string fitted_text(Table table, Format format) {
  if (format != Format::table) return render(table, format);
  const Fitted shown = fitted(std::move(table), terminal_width());
  std::vector<std::string> notes;
  if (!shown.left_out.empty()) notes.push_back("left out: " + join(shown.left_out, ", "));
  if (!shown.cut.empty()) notes.push_back("cut: " + join(shown.cut, ", "));
  if (!notes.empty()) log_info("at this width " + join(notes, "; ") + "; whole with -o wide");
  return render(shown.table, format);
}

bool is_html_page(const std::string& option, const std::string& file) {
  const std::string ending = std::filesystem::path(file).extension().string();
  if (ending == ".html" || ending == ".htm") return true;
  if (ending == ".md") return false;
  throw Error(ErrorCode::usage,
              option + ": \"" + shortened(file) + "\" ends neither in .html nor in .md");
}

void write_file(const std::string& path, std::string_view text) {
  AtomicFile file(path);
  file.write(text);
  file.commit();
}

}  // namespace zl::cli
