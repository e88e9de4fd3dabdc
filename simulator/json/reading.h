// Strict JSON: comments allowed, duplicate keys and depth beyond kMaxJsonDepth refused, errors with
// file, line and column. And JSON as text, which no string in it can make throw.
// Ownership: values. Threads: pure functions.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace zl {

using Json = nlohmann::ordered_json;

// Throws Error{invalid} "source:line:column: malformed JSON: ..." or, for a key given twice in one
// object, where the second one stands and its dotted path. Keys keep the order of the file.
Json parse_json(std::string_view text, std::string_view source);

// What people type where JSON or plain text may stand; null: no JSON, or deeper than files may be.
Json json_or_null(std::string_view text);

// As it is written, on one line without an indent; what is no UTF-8 in it is replaced.
std::string to_text(const Json& value, int indent = -1);

// For messages: to_text(), shortened.
std::string shown(const Json& value);

// Throws Error{invalid} naming the path of a text below `where` that is not UTF-8 or holds a NUL:
// the command line and the names of files can bring in such.
void require_texts(const Json& value, const std::string& where);

// The keys a person may write in the object at dotted path `where` ("" is the top level). Keys that
// begin with "x-" are always allowed. Throws Error{invalid} naming the nearest known key.
void check_keys(const Json& object, const std::string& where,
                const std::vector<std::string>& known);

// "where.key", or "key" at the top level.
std::string child_path(std::string_view where, std::string_view key);

// An integer, also when written like 5e8; empty for anything else.
std::optional<std::int64_t> whole_number(const Json& value);

// Typed values; throw Error{invalid} "where: VALUE is not a ..." otherwise.
std::int64_t integer_at(const Json& value, const std::string& where);
double number_at(const Json& value, const std::string& where);
bool boolean_at(const Json& value, const std::string& where);
std::string text_at(const Json& value, const std::string& where);

}  // namespace zl
