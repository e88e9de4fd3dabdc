// A RunResult as rows: the one place that knows which column holds which field.
// Ownership: the caller owns the connection and the transaction. Threads: one connection per
// thread.
#pragma once

#include <cstdint>
#include <string>

#include "core/train/run_result.h"
#include "results/checked_row.h"

namespace SQLite {
class Database;
}

namespace zl {

// Inserts into runs and its child tables; returns the new runs.id. `scenario` and `environment` are
// rows that exist. Throws SQLite::Exception.
std::int64_t insert_run(SQLite::Database& database, const std::string& scenario,
                        std::int64_t environment, const RunResult& run);

// Throws Error{invalid} when there is no such run or it is damaged, SQLite::Exception otherwise.
RunResult read_run(SQLite::Database& database, std::int64_t id);

// Throws damaged_row() for what is no outcome.
Outcome read_outcome(const CheckedRow& row);

}  // namespace zl
