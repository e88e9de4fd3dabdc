// Strict JSON: comments allowed, duplicate keys refused, errors with file, line and column.
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
