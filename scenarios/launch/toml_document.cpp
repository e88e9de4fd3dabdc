#include "scenarios/launch/toml_document.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>

#include "core/base/error.h"
#include "core/base/text.h"

#ifdef ZL_HAVE_TOML
#define TOML_HEADER_ONLY 1
// Of a key that begins with a character that none may it asserts the contrary before it says so.
#define TOML_ASSERT(condition) static_cast<void>(0)
#include <toml++/toml.h>

#include <sstream>
#endif

namespace zl {

#ifdef ZL_HAVE_TOML

namespace {

Json value_of(const toml::node& node) {
  if (const auto* list = node.as_array()) {
    Json all = Json::array();
    for (const toml::node& each : *list) all.push_back(value_of(each));
    return all;
  }
  if (const auto* table = node.as_table()) {
    Json all = Json::object();
    for (const auto& [key, each] : *table) all[std::string(key.str())] = value_of(each);
    return all;
  }
  if (const auto value = node.value_exact<bool>()) return *value;
  if (const auto value = node.value_exact<std::int64_t>()) return *value;
  if (const auto value = node.value_exact<double>()) return *value;
  if (const auto value = node.value_exact<std::string>()) return *value;
  std::ostringstream text;
  node.visit([&](const auto& each) { text << each; });
  return text.str();
}

// What toml++ 3.3 is undefined on: in keys and bare values other characters than printable ASCII.
// They may stand in comments, of lines that have no string.
void check_characters(std::string_view text, std::string_view source) {
  std::int64_t line = 1;
  bool comment = false, quoted = false;
  for (const char each : text) {
    if (each == '\n') {
      ++line;
      comment = quoted = false;
      continue;
    }
    if (each == '#' && !quoted) comment = true;
    quoted |= each == '"' || each == '\'';
    const auto code = static_cast<unsigned char>(each);
    const bool is_plain = (code >= 0x20 && code < 0x7f) || each == '\t' || each == '\r';
    if (is_plain || (comment && code >= 0x80)) continue;
    throw Error(ErrorCode::invalid,
                std::string(source) + ":" + std::to_string(line) +
                    ": malformed TOML: a character that is not printable ASCII; only comments, on "
                    "lines without a string, may have others");
  }
}

void collect(const toml::table& table, const std::string& where, std::vector<ForeignKey>& out) {
  for (const auto& [key, node] : table) {
    const std::string path = child_path(where, std::string(key.str()));
    if (const auto* inner = node.as_table()) {
      collect(*inner, path, out);
    } else {
      out.push_back({path, value_of(node), static_cast<std::int64_t>(key.source().begin.line)});
    }
  }
}

}  // namespace

bool has_toml() { return true; }

std::vector<ForeignKey> toml_keys(std::string_view text, std::string_view source) {
  check_characters(text, source);
  try {
    std::vector<ForeignKey> keys;
    collect(toml::parse(text, source), "", keys);
    std::ranges::stable_sort(keys, {}, &ForeignKey::line);
    return keys;
  } catch (const toml::parse_error& error) {
    const toml::source_position at = error.source().begin;
    throw Error(ErrorCode::invalid, std::string(source) + ":" + std::to_string(at.line) + ":" +
                                        std::to_string(at.column) + ": malformed TOML: " +
                                        shortened(std::string(error.description())));
  }
}

#else

bool has_toml() { return false; }

std::vector<ForeignKey> toml_keys(std::string_view, std::string_view source) {
  throw Error(ErrorCode::unavailable,
              std::string(source) +
                  ": this build of zerolab reads no TOML; install libtomlplusplus-dev and build "
                  "again");
}

#endif

}  // namespace zl
