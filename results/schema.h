// The database file's identity and version: who wrote it, and bringing it up to date.
// Ownership: the caller owns the connection. Threads: one connection per thread; several processes
// may open the same file at once.
#pragma once

#include <cstdint>
#include <span>

namespace SQLite {
class Database;
}

namespace zl {

inline constexpr std::int32_t kApplicationId = 0x7a6c6462;  // "zldb"

// The SQL of every schema version, oldest first; version n is migrations()[n - 1].
std::span<const char* const> migrations();

// Refuses a file that is not ours from its first 100 bytes. `database` must not have been used yet:
// SQLite then has neither locked the file nor made side files, and a foreign one stays as it is. An
// empty file passes.
// Throws Error{invalid}: not a database, another program's, written by a newer zerolab.
void check_identity(SQLite::Database& database);

// Applies the missing migrations in one transaction, then turns on WAL; a no-op on a current file.
// Throws Error{invalid} for a newer file, SQLite::Exception otherwise.
void migrate(SQLite::Database& database);

// Whether `migrate` would have something to do, but for an empty file.
bool is_older(SQLite::Database& database);

// For read-only opening. Throws Error{invalid} where `migrate` would have had something to do.
void check_version(SQLite::Database& database);

// Whether the tables of a current file are what the migrations make them; more than that is
// nobody's harm. Throws Error{invalid} naming the table, and the column, that is not there, and a
// table that can number no further row.
void check_tables(SQLite::Database& database);

}  // namespace zl
