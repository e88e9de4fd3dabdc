// What tokenizers ask of Unicode beyond letters and numbers: forms, case, categories. From utf8proc
// (2.8 of Debian 12: Unicode 15.0), which a build may lack.
// Ownership: values. Threads: pure functions.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace zl {

// Whether this build has utf8proc; without it everything below throws Error{unavailable}.
bool has_unicode_text();

// "this build has no utf8proc ...; the fix".
std::string no_unicode_text();

enum class UnicodeForm : std::uint8_t { nfc, nfd, nfkc };

// Bytes that are no UTF-8 stay where they are. O(n log n), however many marks a letter has.
std::string to_form(std::string_view text, UnicodeForm form);

// The full mapping of each character by itself.
std::string to_lower_case(std::string_view text);

bool is_nonspacing_mark(char32_t code);      // category Mn
bool is_unicode_punctuation(char32_t code);  // category P*
bool is_control_or_format(char32_t code);    // categories Cc, Cf and Co
bool is_word_character(char32_t code);       // \w of Unicode TS 18

}  // namespace zl
