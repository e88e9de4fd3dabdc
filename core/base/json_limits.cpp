#include "core/base/json_limits.h"

#include <algorithm>
#include <string>

#include "core/base/error.h"
#include "core/base/text.h"

namespace zl {
namespace {

// The last character of the string or comment that begins at `at`, or `at` where none does.
std::size_t last_of(std::string_view text, std::size_t at) {
  // Line comments end where they do for the parser.
  constexpr std::string_view kLineEnds("\n\r\0", 3);
  std::size_t last = at;
  if (text.substr(at).starts_with("//")) {
    last = text.find_first_of(kLineEnds, at);
  } else if (text.substr(at).starts_with("/*")) {
    last = text.find("*/", at + 2);
    if (last != std::string_view::npos) ++last;
  } else if (text[at] == '"') {
    for (last = at + 1; last < text.size() && text[last] != '"';)
      last += text[last] == '\\' ? 2 : 1;
  }
  return std::min(last, text.size());
}

}  // namespace

void require_shallow_json(std::string_view text, std::string_view source) {
  int depth = 0;
  for (std::size_t at = 0; at < text.size(); ++at) {
    const char c = text[at];
    if (c == '{' || c == '[') ++depth;
    if (c == '}' || c == ']') --depth;
    if (depth > kMaxJsonDepth) {
      throw Error(ErrorCode::invalid, std::string(source) + ":" + position_text(text, at + 1) +
                                          ": lists and objects inside each other more than " +
                                          std::to_string(kMaxJsonDepth) + " deep; flatten it");
    }
    at = last_of(text, at);
  }
}

// "[json.exception.parse_error.101] parse error at line 1, column 9: syntax error ...".
std::string json_problem(std::string_view exception) {
  const std::size_t name = exception.find("] ");
  if (name != std::string_view::npos) exception.remove_prefix(name + 2);
  const std::size_t place = exception.find(": ");
  const bool placed = exception.starts_with("parse error at") && place != std::string_view::npos;
  if (placed) exception.remove_prefix(place + 2);
  return shortened(exception);
}

std::string position_text(std::string_view text, std::size_t byte) {
  const std::size_t end = std::min(byte == 0 ? 0 : byte - 1, text.size());
  const std::string_view before = text.substr(0, end);
  const auto line = 1 + std::count(before.begin(), before.end(), '\n');
  const std::size_t start = before.rfind('\n');
  const std::size_t column = start == std::string_view::npos ? end + 1 : end - start;
  return std::to_string(line) + ":" + std::to_string(column);
}

}  // namespace zl
