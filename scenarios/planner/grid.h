// A scenario with some of its keys at several values: what `zerolab run` makes of lists.
// Ownership: values. Threads: pure functions.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "scenarios/planner/document.h"

namespace zl {

struct GridAxis {
  std::string key;  // dotted path: "run.micro_batch", "cluster"
  std::vector<std::string> values;
};

// "1, 2,4" -> 1, 2 and 4.
std::vector<std::string> listed_values(std::string_view text);

inline constexpr std::size_t kMostCombinations = 1000;  // more than a table can show

// Throws Error{usage} where `before` documents times the axis' values are more.
void check_combinations(const GridAxis& axis, std::size_t before);

// One document for each combination of the values; the last axis varies first. A cluster brings its
// own ranks, unless there is an axis of ranks. Throws Error{usage} above kMostCombinations.
std::vector<Document> grid(const Document& document, const std::vector<GridAxis>& axes);

}  // namespace zl
