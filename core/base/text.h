// Text of others, before it is believed or shown: whether it is UTF-8, what of it may reach a
// terminal, how much of it belongs into a message, and what a name may be.
// Ownership: values. Threads: pure functions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace zl {

// Bytes of the UTF-8 sequence at the front; 0: there is none.
std::size_t utf8_length(std::string_view text);
bool is_utf8(std::string_view text);

// What a terminal may get: control characters but for tabs and ends of lines, the characters that
// turn the direction of writing, and bytes that are no UTF-8 stand as \u001b or \xff, the first
// as JSON spells them.
std::string visible(std::string_view text);

// For messages: of more than 200 characters the first ones, then "... (N characters)".
std::string shortened(std::string_view text);

// Throws Error{invalid} "KEY: VALUE is no name: why; the fix" for what must become neither a path,
// a message nor markup: names of strategies, scenarios and tags have 1 to 200 bytes of UTF-8
// without / and \, .., control characters, and a dot or a dash in front.
void require_name(std::string_view name, const std::string& key);

// The number that the whole of the text is, in the C locale without a plus or blanks; nothing for
// any other text, nor where it is out of range. Of reals, infinities and NaN are none.
std::optional<std::int64_t> integer_in(std::string_view text);
std::optional<double> real_in(std::string_view text);

// "zero-1" of "dir/zero-1.json"; what is no path and does not end in .json stays: "a-1.5b".
std::string name_of_file(std::string_view path);

}  // namespace zl
