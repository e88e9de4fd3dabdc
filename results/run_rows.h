// A RunResult as rows: the one place that knows which column holds which field.
// Ownership: the caller owns the connection and the transaction. Threads: one connection per
// thread.
#pragma once

#include <cstdint>

#include "core/train/run_result.h"
#include "results/checked_row.h"
#include "results/origin_rows.h"

namespace SQLite {
class Database;
}

namespace zl {

// Inserts into runs and its child tables; returns the new runs.id. Throws SQLite::Exception.
std::int64_t insert_run(SQLite::Database& database, const RunOrigin& origin, const RunResult& run);

// The run of that origin with the same values in every column of the table runs; 0: none.
std::int64_t find_run(SQLite::Database& database, const RunOrigin& origin, const RunResult& run);

// Throws Error{invalid} when there is no such run or it is damaged, SQLite::Exception otherwise.
RunResult read_run(SQLite::Database& database, std::int64_t id);

// Throws damaged_row() for what is no outcome.
Outcome read_outcome(const CheckedRow& row);

}  // namespace zl
