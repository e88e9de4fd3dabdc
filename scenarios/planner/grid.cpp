#include "scenarios/planner/grid.h"

#include <algorithm>

#include "core/base/error.h"

namespace zl {

std::vector<std::string> listed_values(std::string_view text) {
  std::vector<std::string> values{""};
  for (const char c : text) {
    if (c == ',') {
      values.emplace_back();
    } else if (c != ' ') {
      values.back() += c;
    }
  }
  return values;
}

void check_combinations(const GridAxis& axis, std::size_t before) {
  if (before * axis.values.size() <= kMostCombinations) return;
  throw Error(ErrorCode::usage, axis.key + ": more than " + std::to_string(kMostCombinations) +
                                    " combinations of values; leave some out");
}

std::vector<Document> grid(const Document& document, const std::vector<GridAxis>& axes) {
  const bool own_ranks = std::any_of(axes.begin(), axes.end(),
                                     [](const GridAxis& axis) { return axis.key == "run.ranks"; });
  std::vector<Document> all{document};
  for (const GridAxis& axis : axes) {
    std::vector<Document> longer;
    check_combinations(axis, all.size());
    for (const Document& before : all) {
      for (const std::string& value : axis.values) {
        Document next = before.with(axis.key, value);
        if (axis.key == "cluster" && !own_ranks) next = next.with("run.ranks", "");
        longer.push_back(std::move(next));
      }
    }
    all = std::move(longer);
  }
  return all;
}

}  // namespace zl
