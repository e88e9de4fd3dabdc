// "Did you mean": the known word with the smallest edit distance, the numbers that would divide.
// Threads: pure functions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace zl {

// Levenshtein distance with adjacent transpositions counted as one edit.
std::size_t edit_distance(std::string_view a, std::string_view b);

// The first of the nearest words, upper and lower case alike; empty when `known` is.
std::string nearest(std::string_view word, const std::vector<std::string>& known);

// Of the numbers that divide `size` the next below and above `value`: "2 or 4".
std::string nearest_divisors(std::int64_t size, std::int64_t value);

std::string join(const std::vector<std::string>& words, std::string_view separator);

}  // namespace zl
