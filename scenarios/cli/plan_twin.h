// `zerolab plan --twin`: the best plan, made small, trained here beside its own simulation.
// Ownership: none. Threads: the main thread.
#pragma once

#include "results/format.h"
#include "scenarios/cli/options.h"
#include "scenarios/files/scenario.h"

namespace zl::cli {

// Prints both runs and their books; both are stored. 1 where the books differ or a run failed.
int train_twin(const Scenario& scenario, const ImportedStrategy& plan,
               const DatabaseOptions& database, Format format);

}  // namespace zl::cli
