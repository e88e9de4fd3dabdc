// What of a table a line of the terminal holds.
// Ownership: values. Threads: pure functions.
#pragma once

#include <string>
#include <vector>

#include "results/format.h"

namespace zl {

// As many of the table's columns, from the first on, as a line of `width` characters holds, and the
// names of the others. Prose gets what the others leave it, kLeastProse characters at least, and is
// cut with an ellipsis. 0: any width.
struct Fitted {
  Table table;
  std::vector<std::string> left_out = {}, cut = {};
};
inline constexpr std::size_t kLeastProse = 40;
Fitted fitted(Table table, std::size_t width);

}  // namespace zl
