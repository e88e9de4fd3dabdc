// What JSON of others may take before a parser sees it: parsers, copies and writers of JSON recurse
// with its depth and hold a multiple of its size.
// Ownership: none. Threads: pure functions.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace zl {

inline constexpr int kMaxJsonDepth = 100;

// Throws Error{invalid} "SOURCE:LINE:COLUMN: ..." for text with lists and objects inside each other
// beyond kMaxJsonDepth. Comments and strings are skipped; whether it is JSON is the parser's
// matter.
void require_shallow_json(std::string_view text, std::string_view source);

// What a parser's exception says, without its own names and place, shortened.
std::string json_problem(std::string_view exception);

// "line:column" of the byte that is the `byte`-th, counted from 1.
std::string position_text(std::string_view text, std::size_t byte);

}  // namespace zl
