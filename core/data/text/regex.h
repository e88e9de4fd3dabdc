// Regular expressions of tokenizer files, by PCRE2, which a build may lack.
// Ownership: owns the compiled pattern. Threads: immutable; share it freely.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

namespace zl {

bool has_regex();

class Regex {
 public:
  // `where` is in front of every message. Throws Error{invalid} for a pattern that is malformed or
  // means another thing to Oniguruma, whose patterns these are; Error{unavailable} without PCRE2.
  // \s has the 25 spaces that Oniguruma has; PCRE2 would add U+180E.
  Regex(const std::string& pattern, const std::string& where);
  ~Regex();

  // Calls take(begin, end) for each match that is not empty, in order. What is no UTF-8 parts the
  // text: no match has it. Throws Error{invalid} where a match takes too many steps.
  void find(std::string_view text,
            const std::function<void(std::size_t begin, std::size_t end)>& take) const;

 private:
  struct Compiled;
  std::unique_ptr<const Compiled> compiled_;
};

}  // namespace zl
