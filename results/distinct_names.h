// Names that tell apart what differs. Ownership: values. Threads: pure functions.
#pragma once

#include <string>
#include <vector>

namespace zl {

// Something that is known of a run or a scenario.
struct NamedFact {
  std::string what, value;  // "micro-batch", "2"; value "": it is not known
  std::string brief;        // what it adds to a name: "micro-batch 2"; empty: nothing
};

struct NameWithFacts {
  std::string name;
  std::vector<NamedFact> facts;
  std::string last_resort;  // unlike that of every other: "run 12"
  std::string group = {};   // names of other groups may be the same
};

// Each name, but those that several of a group have with what their facts differ in: "zero-2 (bf16,
// micro-batch 2)"; with the last resort where they differ in none.
std::vector<std::string> distinct_names(const std::vector<NameWithFacts>& all);

}  // namespace zl
