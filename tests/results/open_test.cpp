// Opening: new files, migrations, and every file that must be refused and left as it is.
#include <SQLiteCpp/SQLiteCpp.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <functional>

#include "core/base/error.h"
#include "results/schema.h"
#include "results/store.h"
#include "tests/results/fixtures.h"

namespace zl::test {
namespace {

constexpr auto kWrite = Store::Mode::read_write;
constexpr auto kRead = Store::Mode::read_only;

// The message of the Error, empty when there was none; checks the code and that the file is named.
std::string refusal(const std::filesystem::path& path, Store::Mode mode, ErrorCode code) {
  try {
    Store::open(path, mode);
  } catch (const Error& error) {
    std::string message = error.what();
    EXPECT_EQ(error.code(), code) << message;
    EXPECT_NE(message.find(path.string()), std::string::npos) << message;
    return message;
  }
  ADD_FAILURE() << path << " was opened";
  return "";
}

void expect_contains(const std::string& text, const std::string& part) {
  EXPECT_NE(text.find(part), std::string::npos) << "\"" << text << "\" lacks \"" << part << "\"";
}

SQLite::Database raw(const std::filesystem::path& path) {
  return {path.string(), SQLite::OPEN_READWRITE | SQLite::OPEN_CREATE};
}

std::string pragma(const std::filesystem::path& path, const std::string& name) {
  auto database = raw(path);
  return database.execAndGet("PRAGMA " + name).getString();
}

std::string schema_of(const std::filesystem::path& path) {
  auto database = raw(path);
  return database.execAndGet("SELECT group_concat(sql, ';') FROM sqlite_schema").getString();
}

TEST(Open, NewFileHasIdentityVersionAndWal) {
  TempFolder folder;
  const auto path = folder / "a/b/results.db";
  Store::open(path, kWrite);
  EXPECT_EQ(pragma(path, "application_id"), std::to_string(kApplicationId));
  EXPECT_EQ(pragma(path, "user_version"), std::to_string(migrations().size()));
  EXPECT_EQ(pragma(path, "journal_mode"), "wal");
  EXPECT_EQ(pragma(path, "integrity_check"), "ok");
  const std::string schema = schema_of(path);
  for (const char* name :
       {"environments", "scenarios", "runs", "step_metrics", "memory_peaks", "collectives",
        "phases", "traces", "strategy_table", "sim_vs_measured", "pareto"}) {
    expect_contains(schema, name);
  }
}

TEST(Open, EmptyFileIsANewDatabase) {
  TempFolder folder;
  write_bytes(folder / "results.db", "");
  expect_contains(refusal(folder / "results.db", kRead, ErrorCode::invalid), "is empty");
  Store::open(folder / "results.db", kWrite);
  EXPECT_EQ(pragma(folder / "results.db", "user_version"), std::to_string(migrations().size()));
}

TEST(Open, AgainChangesNothing) {
  TempFolder folder;
  const auto path = folder / "results.db";
  Store::open(path, kWrite).save(a_full_run(), a_scenario(), an_environment());
  const std::string before = bytes_of(path);
  EXPECT_EQ(Store::open(path, kWrite).list().size(), 1u);
  EXPECT_EQ(bytes_of(path), before);
}

// The head of the migrations, with a row in it, becomes the current schema and keeps the row.
TEST(Open, OlderVersionIsMigrated) {
  TempFolder folder;
  const auto path = folder / "results.db", fresh = folder / "fresh.db";
  Store::open(fresh, kWrite);
  {
    auto old = raw(path);
    old.exec(migrations()[0]);
    old.exec("INSERT INTO scenarios VALUES ('h', 'kept', '{}')");
    old.exec("PRAGMA application_id = " + std::to_string(kApplicationId));
    old.exec("PRAGMA user_version = 1");
  }
  ASSERT_GT(migrations().size(), 1u);
  expect_contains(refusal(path, kRead, ErrorCode::invalid), "database version 1");
  Store::open(path, kWrite);
  EXPECT_EQ(pragma(path, "user_version"), std::to_string(migrations().size()));
  EXPECT_EQ(schema_of(path), schema_of(fresh));
  auto database = raw(path);
  EXPECT_EQ(database.execAndGet("SELECT name FROM scenarios").getString(), "kept");
}

// Version 5 had no columns for the precision and the reserved host memory.
TEST(Open, RunOfVersion5ComesBackWithDefaults) {
  TempFolder folder;
  const auto path = folder / "results.db";
  {
    auto old = raw(path);
    for (const char* migration : migrations().first(5)) old.exec(migration);
    old.exec("PRAGMA application_id = " + std::to_string(kApplicationId));
    old.exec("PRAGMA user_version = 5");
    old.exec("INSERT INTO scenarios VALUES ('h', 'kept', '{\"run\":{\"stack\":\"torch-fsdp2\"}}')");
    old.exec(
        "INSERT INTO environments (host, os, kernel, cpu, cores, memory_bytes, gpu, driver,"
        " compiler, build, git_commit) VALUES ('', '', '', '', 1, 1, '', '', '', '', '')");
    old.exec(
        "INSERT INTO runs (scenario, environment, strategy, backend, outcome, message, ranks,"
        " steps, skipped_steps, tokens_per_second, step_time_median_ps, step_time_min_ps,"
        " step_time_max_ps, step_time_low_ps, step_time_high_ps, model_flops_per_step, mfu,"
        " mfu_convention, reserved_device_bytes, wire_bytes_per_step, op_count, op_sequence_hash)"
        " SELECT 'h', 1, 'zero-2', backend, 'ok', '', 4, 3, 0, 10, 250000000000, 0, 0, 0, 0, 5, 0,"
        " '6N', 4096, 64, 9, 11 FROM (SELECT 'cpu' AS backend UNION ALL SELECT 'sim')");
  }
  RunResult expected;
  expected.run_id = 1;
  expected.strategy = "zero-2";
  expected.backend = "cpu";
  expected.ranks = 4;
  expected.steps = 3;
  expected.tokens_per_second = 10;
  expected.step_time.median = 0.25;
  expected.model_flops_per_step = 5;
  expected.mfu_convention = "6N";
  expected.reserved_device = 4096;
  expected.wire_bytes_per_step = 64;
  expected.op_count = 9;
  expected.op_sequence_hash = 11;
  Store store = Store::open(path, kWrite);
  EXPECT_EQ(pragma(path, "user_version"), std::to_string(migrations().size()));
  EXPECT_TRUE(store.load(1) == expected);
  EXPECT_EQ(store.load(2).setup.software, "torch-fsdp2") << "a prediction is of the scenario's";
  EXPECT_EQ(store.list().size(), 2u);
}

// A migration that fails half-way leaves the old version whole.
TEST(Open, FailedMigrationIsRolledBack) {
  TempFolder folder;
  const auto path = folder / "results.db";
  {
    auto old = raw(path);
    old.exec(migrations()[0]);
    old.exec("CREATE TABLE pareto (clash INTEGER)");
    old.exec("PRAGMA application_id = " + std::to_string(kApplicationId));
    old.exec("PRAGMA user_version = 1");
  }
  const std::string before = schema_of(path);
  refusal(path, kWrite, ErrorCode::invalid);
  EXPECT_EQ(pragma(path, "user_version"), "1");
  EXPECT_EQ(schema_of(path), before);
}

TEST(Open, NewerVersionIsRefusedUnchanged) {
  TempFolder folder;
  const auto path = folder / "results.db";
  Store::open(path, kWrite).save(a_full_run(), a_scenario(), an_environment());
  raw(path).exec("PRAGMA user_version = 999");
  const std::string before = bytes_of(path);
  for (const auto mode : {kWrite, kRead}) {
    const std::string message = refusal(path, mode, ErrorCode::invalid);
    expect_contains(message, "written by a newer zerolab");
    expect_contains(message, "999");
    expect_contains(message, "upgrade");
  }
  EXPECT_EQ(bytes_of(path), before);
}

// While another connection is open, the newer version may stand in the WAL only.
TEST(Open, NewerVersionInTheWalIsRefused) {
  TempFolder folder;
  const auto path = folder / "results.db";
  Store::open(path, kWrite);
  auto newer = raw(path);
  newer.exec("PRAGMA user_version = 999");
  for (const auto mode : {kWrite, kRead}) {
    expect_contains(refusal(path, mode, ErrorCode::invalid), "written by a newer zerolab");
  }
}

TEST(Open, ForeignDatabaseIsRefusedUnchanged) {
  TempFolder folder;
  for (const std::string& setup :
       {std::string("PRAGMA application_id = 7"), std::string("PRAGMA user_version = 1"),
        std::string("PRAGMA journal_mode = WAL; CREATE TABLE u (y)")}) {
    const auto path = folder / "foreign.db";
    {
      auto foreign = raw(path);
      foreign.exec("CREATE TABLE t (x); INSERT INTO t VALUES (1);" + setup);
    }
    const std::string before = bytes_of(path);
    for (const auto mode : {kWrite, kRead}) {
      expect_contains(refusal(path, mode, ErrorCode::invalid), "another program");
    }
    EXPECT_EQ(bytes_of(path), before) << setup;
    EXPECT_FALSE(std::filesystem::exists(folder / "foreign.db-wal"));
    EXPECT_FALSE(std::filesystem::exists(folder / "foreign.db-shm"));
    std::filesystem::remove(path);
  }
}

TEST(Open, WhatIsNoDatabaseIsRefusedUnchanged) {
  TempFolder folder;
  const auto path = folder / "notes.txt";
  for (const std::string& text :
       {std::string("short"), std::string(5000, 'x'), std::string("SQLite format 3\0", 16)}) {
    write_bytes(path, text);
    for (const auto mode : {kWrite, kRead}) {
      expect_contains(refusal(path, mode, ErrorCode::invalid), "not a zerolab database");
    }
    EXPECT_EQ(bytes_of(path), text);
  }
}

TEST(Open, DamagedFileIsNamed) {
  TempFolder folder;
  const auto path = folder / "results.db";
  Store::open(path, kWrite).save(a_full_run(), a_scenario(), an_environment());
  const std::string whole = bytes_of(path);
  write_bytes(path, whole.substr(0, whole.size() / 2));  // cut short
  for (const auto mode : {kWrite, kRead}) {
    expect_contains(refusal(path, mode, ErrorCode::invalid), "damaged");
  }
  std::string garbled = whole;  // the header is good, every other page is not
  std::fill(garbled.begin() + 100, garbled.end(), '\x5a');
  write_bytes(path, garbled);
  try {
    Store::open(path, kWrite).list();
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::invalid);
    expect_contains(error.what(), "damaged");
  }
}

// Before anything is trained that could not be stored.
TEST(Open, TablesThatAreNotTheProgramsAreNamed) {
  const std::pair<const char*, const char*> damages[] = {
      {"DROP TABLE step_metrics", "damaged: it has no table step_metrics"},
      {"ALTER TABLE stages DROP COLUMN offload_stall_ps",
       "table stages has no column offload_stall_ps"},
      {"UPDATE sqlite_sequence SET seq = 9223372036854775807", "table runs has no number left"},
      {"PRAGMA user_version = 1", "damaged: its tables are not those of a zerolab database"}};
  for (const auto& [sql, problem] : damages) {
    TempFolder folder;
    const auto path = folder / "results.db";
    Store::open(path, kWrite).save(a_full_run(), a_scenario(), an_environment());
    raw(path).exec(sql);
    const std::string said = refusal(path, kWrite, ErrorCode::invalid);
    expect_contains(said, problem);
    expect_contains(said, path.string());
    expect_contains(said, "restore a copy of the file");
    if (sql[0] != 'P') expect_contains(refusal(path, kRead, ErrorCode::invalid), problem);
  }
}

TEST(Open, MissingFileForReading) {
  TempFolder folder;
  expect_contains(refusal(folder / "none.db", kRead, ErrorCode::failed), "no database yet");
  EXPECT_FALSE(std::filesystem::exists(folder / "none.db"));
}

TEST(Open, FolderInPlaceOfTheFile) {
  TempFolder folder;
  expect_contains(refusal(folder.path(), kWrite, ErrorCode::failed), "is a folder");
}

TEST(Open, ParentThatIsAFile) {
  TempFolder folder;
  write_bytes(folder / "file", "x");
  expect_contains(refusal(folder / "file/results.db", kWrite, ErrorCode::failed),
                  "cannot create the folder");
}

TEST(Open, FolderThatTakesNoFiles) {
  expect_contains(refusal("/proc/zerolab/results.db", kWrite, ErrorCode::failed),
                  "cannot create the folder");
  expect_contains(refusal("/proc/results.db", kWrite, ErrorCode::failed), "cannot open or create");
}

// Runs `work` in a child process as a user whom permission bits bind; true when it returned true.
bool as_ordinary_user(const std::function<bool()>& work) {
  const pid_t child = fork();
  if (child == 0) {
    constexpr uid_t kNobody = 65534;
    if (geteuid() == 0 && seteuid(kNobody) != 0) _exit(2);
    bool good = false;
    try {
      good = work();
    } catch (...) {
    }
    _exit(good ? 0 : 1);
  }
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

bool refused_with(const std::filesystem::path& path, Store::Mode mode, const std::string& part) {
  try {
    Store::open(path, mode);
  } catch (const Error& error) {
    return error.code() == ErrorCode::failed &&
           std::string(error.what()).find(part) != std::string::npos;
  }
  return false;
}

TEST(Open, PermissionBits) {
  TempFolder folder;
  const auto path = folder / "results.db";
  Store::open(path, kWrite).save(a_full_run(), a_scenario(), an_environment());
  const std::string before = bytes_of(path);
  ASSERT_EQ(chmod(folder.path().c_str(), 0755), 0);
  ASSERT_EQ(chmod(path.c_str(), 0444), 0);
  EXPECT_TRUE(as_ordinary_user([&] { return refused_with(path, kWrite, "not writable"); }));
  ASSERT_EQ(chmod(path.c_str(), 0000), 0);
  EXPECT_TRUE(as_ordinary_user([&] { return refused_with(path, kRead, "cannot open"); }));
  ASSERT_EQ(chmod(folder.path().c_str(), 0555), 0);
  EXPECT_TRUE(as_ordinary_user(
      [&] { return refused_with(folder / "new.db", kWrite, "cannot open or create"); }));
  ASSERT_EQ(chmod(folder.path().c_str(), 0755), 0);
  ASSERT_EQ(chmod(path.c_str(), 0644), 0);
  EXPECT_EQ(bytes_of(path), before);
}

}  // namespace
}  // namespace zl::test
