#include "results/store.h"

#include <SQLiteCpp/SQLiteCpp.h>
#include <fmt/format.h>
#include <sqlite3.h>

#include <cstring>
#include <sstream>

#include "core/base/error.h"
#include "core/base/text.h"
#include "results/checked_row.h"
#include "results/run_rows.h"
#include "results/schema.h"
#include "results/summary_rows.h"

namespace zl {
namespace {

constexpr int kBusyMilliseconds = 30'000;
constexpr int kDeadSeconds = 600;

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

template <class Work>
auto guarded(const std::string& path, Work&& work) {
  try {
    return work();
  } catch (const SQLite::Exception& error) {
    throw translated(error, path);
  }
}

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
  database->exec("PRAGMA synchronous = NORMAL");
  return database;
}

std::unique_ptr<SQLite::Database> open_for_reading(const std::filesystem::path& path) {
  std::error_code status;
  if (!std::filesystem::exists(path, status)) {
    throw Error(ErrorCode::failed,
                path.string() + ": there is no database yet: store a run with `zerolab run`");
  }
  auto database = connect(path, SQLite::OPEN_READONLY);
  check_version(*database);
  return database;
}

std::int64_t environment_row(SQLite::Database& database, const Environment& environment) {
  const auto bind = [&](SQLite::Statement& statement) {
    int at = 0;
    for (const std::string* text :
         {&environment.host, &environment.os, &environment.kernel, &environment.cpu,
          &environment.gpu, &environment.driver, &environment.compiler, &environment.build,
          &environment.commit}) {
      statement.bind(++at, *text);
    }
    statement.bind(++at, environment.cores);
    statement.bind(++at, environment.memory_bytes);
  };
  SQLite::Statement insert(database,
                           "INSERT INTO environments (host, os, kernel, cpu, gpu, driver, compiler,"
                           " build, git_commit, cores, memory_bytes)"
                           " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING");
  bind(insert);
  insert.exec();
  SQLite::Statement select(database,
                           "SELECT id FROM environments WHERE (host, os, kernel, cpu, gpu, driver,"
                           " compiler, build, git_commit, cores, memory_bytes)"
                           " = (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)");
  bind(select);
  select.executeStep();
  return select.getColumn(0).getInt64();
}

void insert_scenario(SQLite::Database& database, const ScenarioRecord& scenario) {
  SQLite::Statement insert(database,
                           "INSERT INTO scenarios (hash, name, json) VALUES (?, ?, ?)"
                           " ON CONFLICT (hash) DO NOTHING");
  insert.bind(1, scenario.hash);
  insert.bind(2, scenario.name);
  insert.bind(3, scenario.json);
  insert.exec();
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

std::int64_t Store::save(const RunResult& run, const ScenarioRecord& scenario,
                         const Environment& environment) {
  return guarded(database_->getFilename(), [&] {
    // The write lock first: a transaction that begins by reading cannot wait for another writer.
    SQLite::Transaction transaction(*database_, SQLite::TransactionBehavior::IMMEDIATE);
    insert_scenario(*database_, scenario);
    const std::int64_t machine = environment_row(*database_, environment);
    const std::int64_t id = insert_run(*database_, scenario.hash, machine, run);
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

void Store::annotate(std::int64_t id, const std::string& note, const std::string& tags) {
  std::istringstream words(tags);
  for (std::string tag; words >> tag;) require_name(tag, "tags");
  guarded(database_->getFilename(), [&] {
    SQLite::Statement write(*database_,
                            "INSERT INTO notes (run, note, tags) VALUES (?1, ?2, ?3)"
                            " ON CONFLICT (run) DO UPDATE SET note = ?2, tags = ?3");
    write.bind(1, id);
    write.bind(2, note);
    write.bind(3, tags);
    return write.exec();
  });
}

std::int64_t Store::begin_live(const LiveRun& run) {
  return guarded(database_->getFilename(), [&] {
    SQLite::Statement dead(*database_, "DELETE FROM live_runs WHERE updated <= unixepoch() - ?1");
    dead.bind(1, kDeadSeconds);
    dead.exec();
    SQLite::Statement write(*database_,
                            "INSERT INTO live_runs (scenario, strategy, backend, steps, loss,"
                            " updated) VALUES (?1, ?2, ?3, ?4, x'', unixepoch())");
    write.bind(1, run.scenario);
    write.bind(2, run.strategy);
    write.bind(3, run.backend);
    write.bind(4, run.steps);
    write.exec();
    return database_->getLastInsertRowid();
  });
}

void Store::update_live(std::int64_t id, std::int64_t first_step, const std::vector<double>& loss) {
  guarded(database_->getFilename(), [&] {
    SQLite::Statement write(*database_,
                            "UPDATE live_runs SET loss = ?2, first_step = ?3, updated = unixepoch()"
                            " WHERE id = ?1");
    write.bind(1, id);
    write.bind(2, loss.data(), static_cast<int>(loss.size() * sizeof(double)));
    write.bind(3, first_step);
    return write.exec();
  });
}

void Store::end_live(std::int64_t id) {
  guarded(database_->getFilename(), [&] {
    SQLite::Statement remove(*database_, "DELETE FROM live_runs WHERE id = ?1");
    remove.bind(1, id);
    return remove.exec();
  });
}

std::vector<LiveRun> Store::live_runs() {
  return guarded(database_->getFilename(), [&] {
    std::vector<LiveRun> runs;
    SQLite::Statement read(*database_,
                           "SELECT id, scenario, strategy, backend, steps, loss, first_step"
                           " FROM live_runs"
                           " WHERE updated > unixepoch() - ?1 ORDER BY id");
    read.bind(1, kDeadSeconds);
    while (read.executeStep()) {
      const std::string id = std::to_string(read.getColumn(0).getInt64());
      const CheckedRow row(read, {database_->getFilename(), "live_runs", id});
      LiveRun run{row.whole("id"),        row.text("scenario"), row.text("strategy"),
                  row.text("backend"),    row.whole("steps"),   {},
                  row.whole("first_step")};
      const std::string loss = row.blob("loss");
      run.loss.resize(loss.size() / sizeof(double));
      if (!run.loss.empty())
        std::memcpy(run.loss.data(), loss.data(), run.loss.size() * sizeof(double));
      runs.push_back(std::move(run));
    }
    return runs;
  });
}

std::int64_t Store::data_version() {
  return guarded(database_->getFilename(),
                 [&] { return database_->execAndGet("PRAGMA data_version").getInt64(); });
}

}  // namespace zl
