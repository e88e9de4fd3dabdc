// Several writers at once, readers beside a writer, and a writer that dies inside a transaction.
#include <SQLiteCpp/SQLiteCpp.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sqlite3.h>
#include <sys/wait.h>
#include <unistd.h>

#include <thread>
#include <utility>

#include "core/base/error.h"
#include "results/store.h"
#include "tests/results/fixtures.h"

namespace zl::test {
namespace {

constexpr int kRunsPerWriter = 200;

void write_runs(const std::filesystem::path& path, const std::string& writer) {
  Store store = Store::open(path, Store::Mode::read_write);
  for (int i = 0; i < kRunsPerWriter; ++i) {
    RunResult run = a_full_run();
    run.strategy = writer;
    run.op_count = i;
    store.save(run, a_scenario(), an_environment());
  }
}

// Forks a process that runs `work`; it exits with 0 when nothing was thrown.
template <class Work>
pid_t start(Work work) {
  const pid_t child = fork();
  if (child != 0) return child;
  int code = 0;
  try {
    work();
  } catch (...) {
    code = 1;
  }
  _exit(code);
}

int status_of(pid_t child) {
  int status = -1;
  waitpid(child, &status, 0);
  return status;
}

std::int64_t count(const std::filesystem::path& path, const std::string& query) {
  SQLite::Database database(path.string());
  return database.execAndGet("SELECT count(*) FROM " + query).getInt64();
}

std::string integrity(const std::filesystem::path& path) {
  SQLite::Database database(path.string());
  return database.execAndGet("PRAGMA integrity_check").getString();
}

// Two processes and two threads start on a file that does not exist yet.
TEST(Concurrency, FourWritersLoseNothing) {
  TempFolder folder;
  const auto path = folder / "results.db";
  const pid_t first = start([&] { write_runs(path, "process-1"); });
  const pid_t second = start([&] { write_runs(path, "process-2"); });
  std::string failures[2];
  const auto guarded = [&](int i) {
    try {
      write_runs(path, "thread-" + std::to_string(i + 1));
    } catch (const std::exception& error) {
      failures[i] = error.what();
    }
  };
  std::thread one(guarded, 0), two(guarded, 1);
  one.join();
  two.join();
  EXPECT_EQ(failures[0], "");
  EXPECT_EQ(failures[1], "");
  EXPECT_EQ(status_of(first), 0);
  EXPECT_EQ(status_of(second), 0);
  for (const char* writer : {"process-1", "process-2", "thread-1", "thread-2"}) {
    EXPECT_EQ(count(path, "(SELECT DISTINCT op_count FROM runs WHERE strategy = '" +
                              std::string(writer) + "')"),
              kRunsPerWriter)
        << writer;
  }
  EXPECT_EQ(count(path, "runs"), 4 * kRunsPerWriter);
  EXPECT_EQ(count(path, "step_metrics WHERE name = 'loss'"), 4 * kRunsPerWriter * 4);
  EXPECT_EQ(count(path, "scenarios"), 1);
  EXPECT_EQ(count(path, "environments"), 1);
  EXPECT_EQ(integrity(path), "ok");
}

// Holds processes until `open`: a read from the pipe ends when its last writer is closed.
class Gate {
 public:
  Gate() {
    if (pipe(ends_) != 0) throw std::runtime_error("pipe");
  }
  ~Gate() {
    close(ends_[0]);
    if (ends_[1] >= 0) open();
  }
  Gate(const Gate&) = delete;
  Gate& operator=(const Gate&) = delete;

  void open() { close(std::exchange(ends_[1], -1)); }
  void wait() {  // in the child
    open();
    char byte = 0;
    if (read(ends_[0], &byte, 1) < 0) throw std::runtime_error("read from pipe");
  }

 private:
  int ends_[2];
};

TEST(Concurrency, ManyProcessesOpenANewFileAtOnce) {
  TempFolder folder;
  const auto path = folder / "fresh/results.db";
  Gate gate;
  std::vector<pid_t> children;
  for (int i = 0; i < 8; ++i) {
    children.push_back(start([&] {
      gate.wait();
      Store::open(path, Store::Mode::read_write).save(a_full_run(), a_scenario(), an_environment());
    }));
  }
  gate.open();
  for (const pid_t child : children) EXPECT_EQ(status_of(child), 0);
  EXPECT_EQ(count(path, "runs"), 8);
  EXPECT_EQ(integrity(path), "ok");
}

TEST(Concurrency, ReaderSeesTheLastCommitWhileAWriterWorks) {
  TempFolder folder;
  const auto path = folder / "results.db";
  Store writer = Store::open(path, Store::Mode::read_write);
  writer.save(a_full_run(), a_scenario(), an_environment());
  SQLite::Database busy(path.string(), SQLite::OPEN_READWRITE);
  busy.exec("BEGIN IMMEDIATE; UPDATE runs SET steps = 77");
  Store reader = Store::open(path, Store::Mode::read_only);
  ASSERT_EQ(reader.list().size(), 1u);
  EXPECT_EQ(reader.list()[0].steps, 20);
  EXPECT_THROW(reader.save(a_full_run(), a_scenario(), an_environment()), Error);
  busy.exec("COMMIT");
  EXPECT_EQ(reader.list()[0].steps, 77);
}

// A connection keeps its file locks while others of the same process come and go; without them
// another process would take itself for the last user and remove the WAL.
TEST(Concurrency, OpeningAgainKeepsTheLocksOfThisProcess) {
  TempFolder folder;
  const auto path = folder / "results.db";
  Gate gate;  // the other process starts before this one has a connection it could inherit
  const pid_t other = start([&] {
    gate.wait();
    Store::open(path, Store::Mode::read_write).list();
  });
  Store store = Store::open(path, Store::Mode::read_write);
  store.save(a_full_run(), a_scenario(), an_environment());
  Store::open(path, Store::Mode::read_write);
  Store::open(path, Store::Mode::read_only);
  gate.open();
  EXPECT_EQ(status_of(other), 0);
  EXPECT_TRUE(std::filesystem::exists(folder / "results.db-wal"));
}

int die_at_commit(void*) { return raise(SIGKILL); }

int hook_commit(sqlite3* database, char**, const sqlite3_api_routines*) {
  sqlite3_commit_hook(database, die_at_commit, nullptr);
  return SQLITE_OK;
}

// The writer is killed when all rows are in and nothing is committed. The run is larger than
// SQLite's cache, so that half of it stands in the WAL already.
TEST(Concurrency, KilledInsideATransaction) {
  TempFolder folder;
  const auto path = folder / "results.db";
  const auto kept =
      Store::open(path, Store::Mode::read_write).save(a_full_run(), a_scenario(), an_environment());
  const pid_t child = start([&] {
    sqlite3_auto_extension(reinterpret_cast<void (*)()>(hook_commit));
    RunResult large = a_full_run();
    large.loss.assign(200'000, 1.0);
    Store::open(path, Store::Mode::read_write).save(large, a_scenario(), an_environment());
  });
  const int status = status_of(child);
  ASSERT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
  ASSERT_GT(std::filesystem::file_size(folder / "results.db-wal"), 1'000'000u);

  Store store = Store::open(path, Store::Mode::read_write);
  ASSERT_EQ(store.list().size(), 1u);
  EXPECT_EQ(store.load(kept).loss.size(), 4u);
  EXPECT_EQ(store.save(a_full_run(), a_scenario(), an_environment()), kept + 1);
  EXPECT_EQ(count(path, "step_metrics WHERE name = 'loss'"), 8);
  EXPECT_EQ(integrity(path), "ok");
}

}  // namespace
}  // namespace zl::test
