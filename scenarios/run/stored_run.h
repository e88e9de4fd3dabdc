// A run whose failures are results, and its row in the database: what the command line and the
// dashboard share.
// Ownership: refers to what it is given. Threads: as Runner::run; one Store per thread.
#pragma once

#include "results/environment.h"
#include "results/store.h"
#include "scenarios/run/runner.h"

namespace zl {

// Runner::run, with failures of the machine and of memory as results (`failed`, `infeasible`). A
// run that hooks.stop cut short keeps its steps and is `failed` too. Throws Error for an invalid
// scenario or data and for a backend that cannot be used.
RunResult attempt_run(const Runner& runner, const Scenario& scenario,
                      const ImportedStrategy& strategy, const std::string& backend,
                      const RunHooks& hooks);

// Names what the backend's ranks computed on besides the processor; empties it for the processor.
void name_accelerator(const BackendCapabilities& backend, Environment& environment);

// Whether hooks.stop ended the run before its last step; such a run is not to be stored.
bool was_cut_short(const Scenario& scenario, const RunResult& result, const RunHooks& hooks);

// Saves the result under the scenario with this strategy alone; returns its id.
std::int64_t store_run(Store& store, const Scenario& scenario, const ImportedStrategy& strategy,
                       const RunResult& result, const Environment& environment);

}  // namespace zl
