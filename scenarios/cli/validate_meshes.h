// `zerolab validate --meshes`: what the planner thinks of the meshes that experts chose.
// Ownership: values. Threads: pure functions; searches use all cores.
#pragma once

#include <span>

#include "results/format.h"
#include "scenarios/published/published_run.h"

namespace zl::cli {

struct JudgedMeshes {
  // For every question (model, GPUs, batch, length and software) on 64 GPUs or more the run that
  // was fastest of those published, held against the plans of a search. Ranks that are not among
  // the best tenth are explained.
  Table meshes;
  Table not_judged;  // why, and how many runs
};

JudgedMeshes judged_meshes(std::span<const PublishedRun> runs, const std::string& software);

}  // namespace zl::cli
