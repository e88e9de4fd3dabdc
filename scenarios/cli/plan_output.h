// What `zerolab plan` prints: tables, JSON, or one plan as a file for the software that runs it.
// Ownership: values. Threads: the main thread.
#pragma once

#include <optional>
#include <string>

#include "results/format.h"
#include "scenarios/launch/launch.h"
#include "scenarios/planner/plan_tables.h"
#include "scenarios/planner/robustness.h"

namespace zl::cli {

// How the answer is written: for reading, as a strategy of zerolab's, or as another software's
// configuration.
struct PlanOutput {
  Format format = Format::json;
  bool is_strategy = false;
  std::optional<LaunchSoftware> software = {};

  bool is_file() const { return is_strategy || software; }
  bool is_table() const {
    return !is_file() &&
           (format == Format::table || format == Format::wide || format == Format::md);
  }
};

// Of the value of -o. Throws Error{usage} with what there is.
PlanOutput plan_output(const std::string& name);

void print_plans(const PlanRequest& request, const Plans& plans, const TrainingBill& bill,
                 const RobustnessQuestion& asked, Format format);
// `output` is a file's. What its software cannot say is logged.
void print_launch(const PlanOutput& output, const Plan& plan, const Scenario& scenario);

}  // namespace zl::cli
