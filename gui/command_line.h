// The `zerolab` line that reproduces a study or a search without a window.
// Ownership: values. Threads: pure functions.
#pragma once

#include <string>

#include "scenarios/planner/document.h"
#include "scenarios/planner/plan_request.h"

namespace zl::gui {

// `zerolab run ...` with options where they say everything, checked by the scenario's content hash;
// else the scenario as a file written by the shell. Throws Error for an invalid document.
std::string command_line(const Document& document);

// `zerolab plan ...` of the same document, with what else a search is asked.
std::string plan_command_line(const Document& document, std::int64_t global_batch, PlanGoal goal,
                              const std::string& limits);

}  // namespace zl::gui
