// Runs of letters, numbers, spaces and the rest in UTF-8: what splitters are made of.
// Ownership: views of the caller's text. Threads: pure functions.
#pragma once

#include <cstddef>
#include <string_view>

#include "core/data/unicode_class.h"

namespace zl {

struct ClassedCharacter {
  CharClass kind = CharClass::other;
  std::size_t size = 1;  // bytes
};

// The character at `at` (at < text.size()); a byte that is no UTF-8 is one `other`.
ClassedCharacter class_at(std::string_view text, std::size_t at);

// Where the run of `kind` that goes on at `at` ends; `at` itself where there is none.
std::size_t class_run_end(std::string_view text, std::size_t at, CharClass kind);

// Of the spaces at `begin`, what \s+(?!\S)|\s+ takes: the last one is left to the word that
// follows, unless it is the only one.
std::size_t space_run_end(std::string_view text, std::size_t begin);

}  // namespace zl
