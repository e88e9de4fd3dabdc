// What lists show of the database, row by row: summaries of runs, predictions, machines.
// Ownership: the caller owns the connection and the transaction. Threads: one connection per
// thread.
#pragma once

#include <cstdint>
#include <vector>

#include "results/store.h"

namespace zl {

// Newest first. Damaged runs are passed over, and said.
std::vector<RunSummary> read_summaries(SQLite::Database& database, const RunFilter& filter);

// Both throw damaged_row(); the first Error{invalid} too when there is no such run.
Environment read_environment(SQLite::Database& database, std::int64_t run);
std::vector<Prediction> read_predictions(SQLite::Database& database);

}  // namespace zl
