// What people say of runs, as rows, and whether the runs that they name are there.
// Ownership: the caller owns the connection and the transaction. Threads: one connection per
// thread.
#pragma once

#include <cstdint>
#include <span>
#include <string>

namespace SQLite {
class Database;
}

namespace zl {

struct RunNotes {
  std::string note, tags;  // names separated by spaces
};

// Replaces those of a run. Throws Error{invalid} for a tag that is no name, and SQLite::Exception.
void write_notes(SQLite::Database& database, std::int64_t run, const RunNotes& notes);
RunNotes read_notes(SQLite::Database& database, std::int64_t run);

// Throws Error{invalid} naming the file, every id that no run has, and how to list those there are.
void require_runs(SQLite::Database& database, std::span<const std::int64_t> ids);

}  // namespace zl
