// One run for its trace, executed or replayed: what exports are made of.
// Ownership: values. Threads: called from one thread.
#pragma once

#include <string>
#include <vector>

#include "scenarios/run/replay.h"
#include "scenarios/run/runner.h"

namespace zl {

// Rank 0's trace of a run on a backend; "sim": of a replay, one trace per stage of a pipeline.
// Throws Error as Runner::run does, and Error{infeasible} when a real run is out of memory.
std::vector<TimedTrace> trace_run(const Runner& runner, const Scenario& scenario,
                                  const ImportedStrategy& imported, const std::string& backend);

// What to call it: "zero-3 on sim, ranks 0-7".
std::string trace_name(const Scenario& scenario, const ImportedStrategy& imported,
                       const std::string& backend);

}  // namespace zl
