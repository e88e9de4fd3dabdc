#include "scenarios/cli/output.h"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <nlohmann/json.hpp>

#include "core/base/error.h"
#include "core/base/files.h"
#include "core/base/text.h"

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

Table leaves(const Json& object) {
  Table table{{{"key", Align::left}, {"value", Align::left}}, {}};
  add_leaves(object, "", table);
  return table;
}

void write_file(const std::string& path, std::string_view text) {
  AtomicFile file(path);
  file.write(text);
  file.commit();
}

}  // namespace zl::cli
