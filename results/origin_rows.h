// Where a run comes from, as rows: its scenario and its machine, each once however many runs it
// has. Ownership: the caller owns the connection and the transaction. Threads: one connection per
// thread.
#pragma once

#include <cstdint>
#include <string>

#include "results/store.h"

namespace zl {

struct RunOrigin {
  std::string scenario, scenario_name;  // hash of a row that exists; what this run calls it
  std::int64_t environment = 0;         // id of a row that exists
  std::string saved_at;                 // empty: now
};

// Makes the rows that are missing. Throws SQLite::Exception.
RunOrigin write_origin_rows(SQLite::Database& database, const ScenarioRecord& scenario,
                            const Environment& environment, const std::string& saved_at);

// Throws damaged_row(), and Error{invalid} when there is no such run.
Environment read_environment(SQLite::Database& database, std::int64_t run);

}  // namespace zl
