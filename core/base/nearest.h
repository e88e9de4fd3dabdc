// "Did you mean": the known word with the smallest edit distance.
// Threads: pure functions.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace zl {

// Levenshtein distance with adjacent transpositions counted as one edit.
std::size_t edit_distance(std::string_view a, std::string_view b);

// The first of the nearest words, upper and lower case alike; empty when `known` is.
std::string nearest(std::string_view word, const std::vector<std::string>& known);

std::string join(const std::vector<std::string>& words, std::string_view separator);

}  // namespace zl
