// `zerolab validate --meshes`: what the planner thinks of the meshes that experts chose.
// Ownership: values. Threads: pure functions.
#pragma once

#include <span>

#include "results/format.h"
#include "scenarios/published/published_run.h"

namespace zl::cli {

// A row for every published run that states a mesh of 64 ranks or more and can be expressed.
Table meshes_table(std::span<const PublishedRun> runs, const std::string& software);

}  // namespace zl::cli
