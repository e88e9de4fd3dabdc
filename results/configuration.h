// What two runs were asked to do differently. Ownership: values. Threads: pure functions.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace zl {

struct ConfigurationDifference {
  std::string key;   // "run.seed", "strategy.optimizer.params.lr"
  std::string a, b;  // "-": it is not there
};

// Of two scenarios with one strategy each, as a Store keeps them, by key. Names of scenarios and
// strategies are no configuration; of two models the name, where that differs, stands for the rest.
// Throws Error{invalid} for what is no JSON object.
std::vector<ConfigurationDifference> configuration_differences(std::string_view a,
                                                               std::string_view b);

}  // namespace zl
