// What is known of stored runs, as facts that tell them apart.
// Ownership: values. Threads: pure functions.
#pragma once

#include <string>
#include <vector>

#include "results/distinct_names.h"
#include "results/store.h"

namespace zl {

struct FactsOfRun {
  RunSummary run;
  std::string configuration;  // JSON of its scenario
};

// The strategies by name: model, cluster, software, precision, batch, data, ..., and of those whose
// facts are all alike every other key in which they are configured differently.
std::vector<NameWithFacts> facts_of_runs(const std::vector<FactsOfRun>& runs);

// The scenarios by name, the same without what is the strategy's.
std::vector<NameWithFacts> facts_of_scenarios(const std::vector<FactsOfRun>& scenarios);

}  // namespace zl
