// What is in the catalogue, and what became of a strategy's keys, as tables; what decides first.
// Ownership: values. Threads: pure functions.
#pragma once

#include "results/format.h"
#include "scenarios/deepspeed/import.h"

namespace zl::cli {

Table list_models();
Table list_clusters();  // one device of each; "local" included
Table list_software();
Table list_strategies();
Table list_studies();

// key, given, effective, status, why.
Table effects_table(const ImportedStrategy& imported);

}  // namespace zl::cli
