// UTF-8 as code points; what is no UTF-8 passes as single bytes.
// Ownership: views of the caller's text. Threads: pure functions.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace zl {

// Stands for a byte that is part of no valid sequence.
inline constexpr char32_t kNoCharacter = 0xffffffff;

struct Utf8Character {
  char32_t code = kNoCharacter;
  std::size_t size = 1;  // bytes
};

// The character at `at` (at < text.size()).
Utf8Character utf8_at(std::string_view text, std::size_t at);

// The size of the last character of a text that is not empty.
std::size_t utf8_last_size(std::string_view text);

// `code` must be a scalar value: no surrogate, at most U+10FFFF.
void append_utf8(std::string& text, char32_t code);

// Calls take(code, bytes) for each character in order; code is kNoCharacter for a single bad byte.
template <class Take>
void for_each_utf8(std::string_view text, Take&& take) {
  for (std::size_t at = 0; at < text.size();) {
    const Utf8Character character = utf8_at(text, at);
    take(character.code, text.substr(at, character.size));
    at += character.size;
  }
}

}  // namespace zl
