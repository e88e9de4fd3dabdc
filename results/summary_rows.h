// What lists show of the database, row by row: summaries of runs, predictions.
// Ownership: the caller owns the connection and the transaction. Threads: one connection per
// thread.
#pragma once

#include <cstdint>
#include <vector>

#include "results/store.h"

namespace zl {

// Newest first, with filter.ids in their order. Damaged runs are passed over, and said.
std::vector<RunSummary> read_summaries(SQLite::Database& database, const RunFilter& filter);

// Throws damaged_row().
std::vector<Prediction> read_predictions(SQLite::Database& database);

}  // namespace zl
