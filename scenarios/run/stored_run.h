// A run whose failures are results, and its row in the database: what the command line and the
// dashboard share.
// Ownership: refers to what it is given. Threads: as Runner::run; one Store per thread.
#pragma once

#include <span>
#include <string>

#include "results/environment.h"
#include "results/store.h"
#include "scenarios/run/runner.h"

namespace zl {

// Runner::run, with failures of the machine and of memory as results (`failed`, `infeasible`). A
// run that hooks.stop cut short keeps its steps and is `interrupted`. Throws Error for an invalid
// scenario or data and for a backend that cannot be used.
RunResult attempt_run(const Runner& runner, const Scenario& scenario,
                      const ImportedStrategy& strategy, const std::string& backend,
                      const RunHooks& hooks);

// Names what the backend's ranks computed on besides the processor; empties it for the processor.
void name_accelerator(const BackendCapabilities& backend, Environment& environment);

// A real run that took a step, or a prediction that was made: that it does not fit is one. A run
// that measured nothing is no row.
bool is_worth_storing(const RunResult& result);

// Saves the result under the scenario with this strategy alone; returns its id, 0 when it is not
// worth storing.
std::int64_t store_run(Store& store, const Scenario& scenario, const ImportedStrategy& strategy,
                       const RunResult& result, const Environment& environment,
                       const RunLabels& labels = {});

// "9 of 9 failed: 8 out_of_memory, 1 failed" when there are several results and none of them gave
// what was asked for; else empty.
std::string failure_of_all(std::span<const RunResult> results);

}  // namespace zl
