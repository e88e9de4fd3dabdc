#include "results/store.h"

#include <SQLiteCpp/Backup.h>
#include <SQLiteCpp/SQLiteCpp.h>
#include <fmt/format.h>
#include <sqlite3.h>

#include <utility>

#include "core/base/error.h"
#include "results/guarded.h"
#include "results/note_rows.h"
#include "results/origin_rows.h"
#include "results/run_rows.h"
#include "results/schema.h"
#include "results/summary_rows.h"

namespace zl {

namespace {

Error translated(const SQLite::Exception& error, const std::string& path) {
  const auto make = [&](ErrorCode code, const char* text) {
    return Error(code, fmt::format("{}: {} (SQLite: {})", path, text, error.what()));
  };
  switch (error.getErrorCode()) {
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
      return make(ErrorCode::invalid, "the database is damaged; move it away or restore a copy");
    case SQLITE_CONSTRAINT:
      return make(ErrorCode::invalid, "the database refuses this value");
    case SQLITE_ERROR:  // of statements that never change: the tables are not what they were
      return make(ErrorCode::invalid,
                  "damaged: its tables are not those of a zerolab database; restore a copy of the "
                  "file, or move it away and begin a new one");
    case SQLITE_BUSY:
      return make(ErrorCode::failed, "another program keeps the database locked; try again");
    case SQLITE_READONLY:
      return make(ErrorCode::failed,
                  "the database is not writable; check its permissions or name "
                  "another file with --db");
    case SQLITE_CANTOPEN:
      return make(ErrorCode::failed,
                  "cannot open or create the database; check its permissions and "
                  "those of its folder, or name another file with --db");
    case SQLITE_FULL:
      return make(ErrorCode::failed, "the disk is full");
    default:
      return make(ErrorCode::failed, "the database does not work");
  }
}

}  // namespace

void rethrow_translated(const std::string& path) {
  try {
    throw;
  } catch (const SQLite::Exception& error) {
    throw translated(error, path);
  }
}

namespace {

constexpr int kBusyMilliseconds = 30'000;

void create_folder_of(const std::filesystem::path& path) {
  const auto folder = path.parent_path();
  if (folder.empty()) return;
  std::error_code failure;
  std::filesystem::create_directories(folder, failure);
  if (failure) {
    throw Error(ErrorCode::failed,
                fmt::format("{}: cannot create the folder {}: {}; name another file with --db",
                            path.string(), folder.string(), failure.message()));
  }
}

std::unique_ptr<SQLite::Database> connect(const std::filesystem::path& path, int flags) {
  std::error_code status;
  if (std::filesystem::is_directory(path, status)) {
    throw Error(ErrorCode::failed, path.string() + ": is a folder; name a database file with --db");
  }
  auto database = std::make_unique<SQLite::Database>(path.string(), flags, kBusyMilliseconds);
  check_identity(*database);
  database->exec("PRAGMA foreign_keys = ON");
  return database;
}

std::unique_ptr<SQLite::Database> open_for_writing(const std::filesystem::path& path) {
  auto database = connect(path, SQLite::OPEN_READWRITE | SQLite::OPEN_CREATE);
  // SQLite silently falls back to reading where it may not write.
  if (sqlite3_db_readonly(database->getHandle(), "main") == 1) {
    throw SQLite::Exception("read-only file", SQLITE_READONLY);
  }
  migrate(*database);
  check_tables(*database);
  database->exec("PRAGMA synchronous = NORMAL");
  return database;
}

void require_file(const std::filesystem::path& path) {
  std::error_code status;
  if (std::filesystem::exists(path, status)) return;
  throw Error(ErrorCode::failed,
              path.string() + ": there is no database yet: store a run with `zerolab run`");
}

std::unique_ptr<SQLite::Database> open_for_reading(const std::filesystem::path& path) {
  require_file(path);
  auto database = connect(path, SQLite::OPEN_READONLY);
  check_version(*database);
  check_tables(*database);
  return database;
}

// `name`: what messages call it.
std::unique_ptr<SQLite::Database> empty_in_memory(const std::string& name) {
  return std::make_unique<SQLite::Database>(
      name, SQLite::OPEN_READWRITE | SQLite::OPEN_CREATE | SQLite::OPEN_MEMORY);
}

// Of whichever version the file is, the copy is of the newest.
std::unique_ptr<SQLite::Database> copied(const std::filesystem::path& path) {
  std::error_code status;
  if (!std::filesystem::exists(path, status)) {
    throw Error(ErrorCode::failed, path.string() + ": there is no such file");
  }
  const auto source = connect(path, SQLite::OPEN_READONLY);
  auto copy = empty_in_memory(path.string());
  SQLite::Backup(*copy, *source).executeStep();
  migrate(*copy);
  check_tables(*copy);
  return copy;
}

}  // namespace

Store::Store(std::unique_ptr<SQLite::Database> database) : database_(std::move(database)) {}
Store::Store(Store&&) noexcept = default;
Store& Store::operator=(Store&&) noexcept = default;
Store::~Store() = default;

Store Store::open(const std::filesystem::path& path, Mode mode) {
  return guarded(path.string(), [&] {
    if (mode == Mode::read_write) create_folder_of(path);
    return Store(mode == Mode::read_write ? open_for_writing(path) : open_for_reading(path));
  });
}

Store Store::open_any_version(const std::filesystem::path& path) {
  return guarded(path.string(), [&] {
    require_file(path);
    return Store(is_older(*connect(path, SQLite::OPEN_READONLY)) ? copied(path)
                                                                 : open_for_reading(path));
  });
}

Store Store::in_memory() {
  const std::string name = "in memory";
  return guarded(name, [&] {
    auto database = empty_in_memory(name);
    migrate(*database);
    return Store(std::move(database));
  });
}

Store Store::open_copy(const std::filesystem::path& path) {
  return guarded(path.string(), [&] { return Store(copied(path)); });
}

std::int64_t Store::save(const RunResult& run, const ScenarioRecord& scenario,
                         const Environment& environment, const RunLabels& labels) {
  return guarded(database_->getFilename(), [&] {
    // The write lock first: a transaction that begins by reading cannot wait for another writer.
    SQLite::Transaction transaction(*database_, SQLite::TransactionBehavior::IMMEDIATE);
    const RunOrigin origin = write_origin_rows(*database_, scenario, environment, labels.saved_at);
    const std::int64_t id = insert_run(*database_, origin, run);
    if (!labels.note.empty() || !labels.tags.empty()) {
      write_notes(*database_, id, {labels.note, labels.tags});
    }
    transaction.commit();
    return id;
  });
}

std::vector<RunSummary> Store::list(const RunFilter& filter) {
  return guarded(database_->getFilename(), [&] { return read_summaries(*database_, filter); });
}

RunResult Store::load(std::int64_t id) {
  return guarded(database_->getFilename(), [&] {
    SQLite::Transaction snapshot(*database_);  // all tables as of one moment
    return read_run(*database_, id);
  });
}

Environment Store::environment(std::int64_t id) {
  return guarded(database_->getFilename(), [&] { return read_environment(*database_, id); });
}

std::string Store::scenario_json(const std::string& hash) {
  return guarded(database_->getFilename(), [&] {
    SQLite::Statement select(*database_, "SELECT json FROM scenarios WHERE hash = ?");
    select.bind(1, hash);
    if (select.executeStep()) return select.getColumn(0).getString();
    throw Error(ErrorCode::invalid, database_->getFilename() + ": no scenario " + hash);
  });
}

std::vector<Prediction> Store::predictions() {
  return guarded(database_->getFilename(), [&] { return read_predictions(*database_); });
}

std::int64_t Store::data_version() {
  return guarded(database_->getFilename(),
                 [&] { return database_->execAndGet("PRAGMA data_version").getInt64(); });
}

}  // namespace zl
