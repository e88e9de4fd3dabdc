// The options of `zerolab plan`, and the questions they ask.
// Ownership: values. Threads: the main thread.
#pragma once

#include <string>
#include <vector>

#include "scenarios/cli/options.h"
#include "scenarios/planner/answers.h"
#include "scenarios/planner/robustness.h"

namespace zl::cli {

struct PlanOptions {
  ScenarioOptions scenario;
  DatabaseOptions database;  // of the twin
  bool twin = false;
  std::int64_t global_batch = 0, top = 10, pick = 1;
  std::string goal = "throughput", limits, format = "table";
  std::string gpus, clusters, tokens, failures, stragglers, from, report;
  std::vector<double> prices;  // of a GPU-hour: one for all, or one for each of --clusters
};

void add_plan_options(CLI::App& app, PlanOptions& options);

// One scenario for each value of the options that have several. The functions throw Error{usage}
// naming the option.
std::vector<ScenarioOverrides> variants(const PlanOptions& options);
TrainingBill training_bill(const PlanOptions& options);
// Of a GPU of the cluster: one price is of all, several are of --clusters.
double price_on(const PlanOptions& options, const std::string& cluster);
RobustnessQuestion robustness_question(const PlanOptions& options);

}  // namespace zl::cli
