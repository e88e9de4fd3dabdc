#include "results/schema.h"

#include <SQLiteCpp/SQLiteCpp.h>
#include <fmt/format.h>
#include <sqlite3.h>

#include <array>
#include <cstring>
#include <set>
#include <string>
#include <utility>

#include "core/base/error.h"

namespace zl {
namespace {

// Field offsets of the SQLite file header (sqlite.org/fileformat2.html, section 1.3).
constexpr int kHeaderBytes = 100;
constexpr std::size_t kUserVersionAt = 60;
constexpr std::size_t kApplicationIdAt = 68;
constexpr char kMagic[] = "SQLite format 3";  // 16 bytes with its terminator

std::int32_t big_endian(const unsigned char* bytes) {
  return static_cast<std::int32_t>(std::uint32_t{bytes[0]} << 24 | std::uint32_t{bytes[1]} << 16 |
                                   std::uint32_t{bytes[2]} << 8 | std::uint32_t{bytes[3]});
}

int newest_version() { return static_cast<int>(migrations().size()); }

void refuse_newer(const std::string& path, int version) {
  if (version <= newest_version()) return;
  throw Error(ErrorCode::invalid,
              fmt::format("{}: written by a newer zerolab (database version {}, this program knows "
                          "{}): upgrade zerolab, or name another file with --db",
                          path, version, newest_version()));
}

int user_version(SQLite::Database& database) {
  return database.execAndGet("PRAGMA user_version").getInt();
}

// SQLite does not wait when two connections both want the switch; the loser must ask again.
void use_wal(SQLite::Database& database) {
  constexpr int kAttempts = 1000;
  constexpr int kPauseMilliseconds = 10;
  for (int attempt = 1;; ++attempt) {
    try {
      database.exec("PRAGMA journal_mode = WAL");
      return;
    } catch (const SQLite::Exception& error) {
      if (error.getErrorCode() != SQLITE_BUSY || attempt == kAttempts) throw;
      sqlite3_sleep(kPauseMilliseconds);
    }
  }
}

using Columns = std::set<std::pair<std::string, std::string>>;  // table, column

Columns columns_of(SQLite::Database& database) {
  SQLite::Statement select(
      database,
      "SELECT t.name, c.name FROM sqlite_master t, pragma_table_info(t.name) c "
      "WHERE t.type = 'table' AND t.name NOT LIKE 'sqlite_%'");
  Columns columns;
  while (select.executeStep()) {
    columns.emplace(select.getColumn(0).getString(), select.getColumn(1).getString());
  }
  return columns;
}

const Columns& current_columns() {
  static const Columns all = [] {
    SQLite::Database fresh(":memory:", SQLite::OPEN_READWRITE | SQLite::OPEN_CREATE);
    migrate(fresh);
    return columns_of(fresh);
  }();
  return all;
}

Error damaged(SQLite::Database& database, const std::string& problem) {
  return Error(ErrorCode::invalid,
               fmt::format("{}: damaged: {}; restore a copy of the file, or move it away and begin "
                           "a new one",
                           database.getFilename(), problem));
}

}  // namespace

// The header is read through SQLite's own file handle: with a handle of our own, closing it would
// drop the locks that other connections of this process hold (sqlite.org/howtocorrupt.html, 2.2).
void check_identity(SQLite::Database& database) {
  const std::string& name = database.getFilename();
  sqlite3_file* file = nullptr;
  sqlite3_int64 size = 0;
  int status = sqlite3_file_control(database.getHandle(), "main", SQLITE_FCNTL_FILE_POINTER, &file);
  if (status == SQLITE_OK) status = file->pMethods->xFileSize(file, &size);
  if (status != SQLITE_OK) throw SQLite::Exception("cannot read its header", status);
  if (size == 0) return;
  std::array<unsigned char, kHeaderBytes> header{};
  status = file->pMethods->xRead(file, header.data(), kHeaderBytes, 0);  // zero-fills a short file
  if (status != SQLITE_OK && status != SQLITE_IOERR_SHORT_READ) {
    throw SQLite::Exception("cannot read its header", status);
  }
  if (status == SQLITE_IOERR_SHORT_READ || std::memcmp(header.data(), kMagic, sizeof kMagic) != 0) {
    throw Error(ErrorCode::invalid,
                name + ": is not a zerolab database (not an SQLite file); name another with --db");
  }
  if (big_endian(header.data() + kApplicationIdAt) != kApplicationId) {
    throw Error(ErrorCode::invalid, name +
                                        ": is an SQLite database of another program, left as it "
                                        "is; name another file with --db");
  }
  refuse_newer(name, big_endian(header.data() + kUserVersionAt));
}

// The first commit is made before WAL is on, so it reaches the main file, where `check_identity`
// can read the application id.
void migrate(SQLite::Database& database) {
  // Cheap look first: a current file needs no write lock.
  if (user_version(database) != newest_version()) {
    // A table that is made anew is dropped first: what refers to its rows stays. Within a
    // transaction this pragma does nothing.
    database.exec("PRAGMA foreign_keys = OFF");
    SQLite::Transaction transaction(database, SQLite::TransactionBehavior::IMMEDIATE);
    const int version = user_version(database);  // another process may have migrated meanwhile
    refuse_newer(database.getFilename(), version);
    if (version == 0) database.exec(fmt::format("PRAGMA application_id = {}", kApplicationId));
    for (int next = version; next < newest_version(); ++next) database.exec(migrations()[next]);
    database.exec(fmt::format("PRAGMA user_version = {}", newest_version()));
    transaction.commit();
    database.exec("PRAGMA foreign_keys = ON");
  }
  if (database.execAndGet("PRAGMA journal_mode").getString() != "wal") use_wal(database);
}

bool is_older(SQLite::Database& database) {
  const int version = user_version(database);
  return 0 < version && version < newest_version();
}

void check_tables(SQLite::Database& database) {
  const Columns found = columns_of(database);
  for (const auto& [table, column] : current_columns()) {
    if (found.contains({table, column})) continue;
    const auto first = found.lower_bound({table, ""});
    throw damaged(database, first == found.end() || first->first != table
                                ? "it has no table " + table
                                : "its table " + table + " has no column " + column);
  }
  constexpr std::int64_t kMostRows = std::int64_t{1} << 60;
  SQLite::Statement select(database, "SELECT name FROM sqlite_sequence WHERE seq > ?");
  select.bind(1, kMostRows);
  if (!select.executeStep()) return;
  throw damaged(database, "its table " + select.getColumn(0).getString() +
                              " has no number left for another row");
}

void check_version(SQLite::Database& database) {
  const int version = user_version(database);
  refuse_newer(database.getFilename(), version);
  if (version == newest_version()) return;
  throw Error(ErrorCode::invalid,
              version == 0 ? database.getFilename() + ": is empty: store a run with `zerolab run`"
                           : fmt::format("{}: has database version {}, this program reads {}: any "
                                         "`zerolab run` with this file brings it up to date",
                                         database.getFilename(), version, newest_version()));
}

}  // namespace zl
