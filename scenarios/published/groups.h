// What is left out of a fit at once.
// Ownership: values. Threads: pure functions.
#pragma once

#include <optional>
#include <string>

#include "scenarios/published/published_run.h"
#include "simulator/cluster/software.h"

namespace zl {

// One source; where a profile has one source only of GPUs of a generation, one shape of model and
// mesh.
std::string source_group(const PublishedRun& run, sim::Generation generation);
std::string shape_group(const PublishedRun& run, sim::Generation generation);

// The profile as the fit without the run's group left it; nothing where it was in no fit.
std::optional<sim::Software> fitted_without(const sim::Software& profile, const PublishedRun& run,
                                            sim::Generation generation);

}  // namespace zl
