// A shell script as the words that its commands and arrays are made of: comments, quotes,
// continued lines and the variables that the script itself sets are resolved; nothing runs.
// Ownership: values. Threads: pure functions.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace zl {

struct ShellWord {
  std::string text;
  std::int64_t line = 0;
  std::string unset;    // a variable in it that the script does not set; it stands there as written
  bool is_end = false;  // of a command: of its line, or ; & |
};

// In order; arrays where they are written, NAME=value and expansions of whole arrays left out.
// Throws Error{invalid} "source:line: ..." for a quote, a parenthesis or a brace without its end.
std::vector<ShellWord> shell_words(std::string_view text, std::string_view source);

}  // namespace zl
