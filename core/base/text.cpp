#include "core/base/text.h"

#include <charconv>
#include <cmath>
#include <cstdint>
#include <cstdio>

#include "core/base/error.h"

namespace zl {
namespace {

constexpr std::size_t kLongestShown = 200;
constexpr std::size_t kLongestName = 200;  // file systems take 255

template <class Number>
std::optional<Number> number_of(std::string_view text) {
  Number number{};
  const char* const end = text.data() + text.size();
  const auto [rest, status] = std::from_chars(text.data(), end, number);
  if (status != std::errc() || rest != end) return std::nullopt;
  return number;
}

// Of a sequence that utf8_length() accepted.
std::uint32_t code_point(std::string_view sequence) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(sequence[i]); };
  std::uint32_t code = sequence.size() == 1 ? byte(0) : byte(0) & (0x7fu >> sequence.size());
  for (std::size_t i = 1; i < sequence.size(); ++i) code = code << 6 | (byte(i) & 0x3fu);
  return code;
}

// Terminals act on C0, DEL and C1; the others reorder the text around them.
bool is_control(std::uint32_t code) {
  return code < 0x20 || (code >= 0x7f && code < 0xa0) || (code >= 0x202a && code <= 0x202e) ||
         (code >= 0x2066 && code <= 0x2069);
}

std::string escaped(const char* format, std::uint32_t code) {
  char text[8];
  std::snprintf(text, sizeof text, format, code & 0xffff);
  return text;
}

// Calls take(sequence, code) for every character, and take(byte, nothing) for what is none.
template <class Take>
void for_each_character(std::string_view text, Take&& take) {
  while (!text.empty()) {
    const std::size_t length = utf8_length(text);
    const std::string_view sequence = text.substr(0, length == 0 ? 1 : length);
    take(sequence, length != 0);
    text.remove_prefix(sequence.size());
  }
}

bool has_control(std::string_view text) {
  bool found = false;
  for_each_character(text, [&](std::string_view sequence, bool valid) {
    found = found || (valid && is_control(code_point(sequence)));
  });
  return found;
}

std::string problem_of(std::string_view name) {
  if (name.empty()) return "it is empty";
  if (name.size() > kLongestName) {
    return "it has " + std::to_string(name.size()) + " bytes; at most " +
           std::to_string(kLongestName) + " do";
  }
  if (!is_utf8(name)) return "it is not UTF-8";
  if (name.find_first_of("/\\") != std::string_view::npos) return "it has a / or \\";
  if (name.find("..") != std::string_view::npos) return "it has .. in it";
  if (name.front() == '.' || name.front() == '-') {
    return std::string("it begins with a ") + name.front();
  }
  return has_control(name) ? "it has a control character" : "";
}

}  // namespace

std::size_t utf8_length(std::string_view text) {
  if (text.empty()) return 0;
  const auto first = static_cast<unsigned char>(text[0]);
  const std::size_t length = first < 0x80   ? 1
                             : first < 0xc2 ? 0
                             : first < 0xe0 ? 2
                             : first < 0xf0 ? 3
                             : first < 0xf5 ? 4
                                            : 0;
  if (length == 0 || length > text.size()) return 0;
  for (std::size_t i = 1; i < length; ++i) {
    if ((static_cast<unsigned char>(text[i]) & 0xc0) != 0x80) return 0;
  }
  const std::uint32_t code = code_point(text.substr(0, length));
  const bool overlong = (length == 3 && code < 0x800) || (length == 4 && code < 0x10000);
  const bool surrogate = code >= 0xd800 && code < 0xe000;
  return overlong || surrogate || code > 0x10ffff ? 0 : length;
}

bool is_utf8(std::string_view text) {
  bool all = true;
  for_each_character(text, [&all](std::string_view, bool valid) { all = all && valid; });
  return all;
}

std::string visible(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for_each_character(text, [&out](std::string_view sequence, bool valid) {
    const std::uint32_t code = valid ? code_point(sequence) : 0;
    if (!valid) {
      out += escaped("\\x%02x", static_cast<unsigned char>(sequence[0]));
    } else if (is_control(code) && code != '\n' && code != '\t') {
      out += escaped("\\u%04x", code);
    } else {
      out += sequence;
    }
  });
  return out;
}

std::string shortened(std::string_view text) {
  if (text.size() <= kLongestShown) return std::string(text);
  std::size_t characters = 0, end = 0;
  for_each_character(text, [&](std::string_view sequence, bool) {
    if (++characters <= kLongestShown) end += sequence.size();
  });
  if (end == text.size()) return std::string(text);
  return std::string(text.substr(0, end)) + "... (" + std::to_string(characters) + " characters)";
}

void require_name(std::string_view name, const std::string& key) {
  const std::string problem = problem_of(name);
  if (problem.empty()) return;
  throw Error(ErrorCode::invalid, key + ": \"" + visible(shortened(name)) + "\" is no name: " +
                                      problem + "; write another, such as \"zero-2 (mine)\"");
}

std::optional<std::int64_t> integer_in(std::string_view text) {
  return number_of<std::int64_t>(text);
}

std::optional<double> real_in(std::string_view text) {
  const auto number = number_of<double>(text);
  return number && std::isfinite(*number) ? number : std::nullopt;
}

std::string name_of_file(std::string_view path) {
  std::string_view name = path.substr(path.rfind('/') + 1);
  if (name.ends_with(".json")) name.remove_suffix(std::string_view(".json").size());
  return std::string(name);
}

}  // namespace zl
