// Databases of others: whatever stands in their rows, a list, a run and a report are there or
// refused with an error that names the file; nothing else is thrown, and nothing hangs.
#include <gtest/gtest.h>
#include <sqlite3.h>

#include <filesystem>
#include <random>

#include "core/base/log.h"
#include "core/base/text.h"
#include "results/report_html.h"
#include "results/report_markdown.h"
#include "results/store.h"
#include "scenarios/files/load_scenario.h"
#include "scenarios/report/collect_report.h"
#include "scenarios/run/runner.h"
#include "scenarios/run/stored_run.h"
#include "tests/results/fixtures.h"
#include "tests/results/xml_reader.h"
#include "tests/scenarios/message.h"

namespace zl {
namespace {

constexpr int kDatabases = 300;

// A connection that takes what the tables would refuse.
class Sql {
 public:
  explicit Sql(const std::string& path) {
    EXPECT_EQ(sqlite3_open(path.c_str(), &database_), SQLITE_OK);
    run("PRAGMA ignore_check_constraints = ON; PRAGMA foreign_keys = OFF");
  }
  ~Sql() { sqlite3_close(database_); }
  Sql(const Sql&) = delete;
  Sql& operator=(const Sql&) = delete;

  // Whether it changed a row: types and keys are refused all the same.
  bool run(const std::string& sql) {
    const int before = sqlite3_total_changes(database_);
    sqlite3_exec(database_, sql.c_str(), nullptr, nullptr, nullptr);
    return sqlite3_total_changes(database_) > before;
  }
  // The first column of every row.
  std::vector<std::string> column(const std::string& sql) {
    std::vector<std::string> values;
    sqlite3_stmt* statement = nullptr;
    EXPECT_EQ(sqlite3_prepare_v2(database_, sql.c_str(), -1, &statement, nullptr), SQLITE_OK);
    while (sqlite3_step(statement) == SQLITE_ROW) {
      const auto* text = reinterpret_cast<const char*>(sqlite3_column_text(statement, 0));
      values.emplace_back(text == nullptr ? "" : text);
    }
    sqlite3_finalize(statement);
    return values;
  }

 private:
  sqlite3* database_ = nullptr;
};

// Two strategies, simulated and with the measurements of a fixture.
void write_good_database(const std::string& path) {
  const Scenario scenario = scenario_from_json(
      R"({"schema": 1, "name": "tiny", "model": "gpt2-tiny", "strategies": ["zero-0", "zero-2"],
          "run": {"ranks": 2, "steps": 2, "data": "synthetic", "sequence_length": 16}})",
      "tiny");
  Store store = Store::open(path, Store::Mode::read_write);
  const Runner runner;
  for (const ImportedStrategy& strategy : scenario.strategies) {
    RunResult run = attempt_run(runner, scenario, strategy, "sim", {});
    for (const char* backend : {"sim", "cpu"}) {
      run.backend = backend;
      run.loss = {5.5, 5.25};
      run.warnings = {"a warning"};
      const std::int64_t id = store_run(store, scenario, strategy, run, test::an_environment());
      store.annotate(id, "a note", "tag");
    }
  }
  store.begin_live(
      {.scenario = "tiny", .strategy = "zero-0", .backend = "cpu", .steps = 9, .loss = {}});
}

std::string any_value(std::mt19937& random) {
  static const std::vector<std::string> values = {"0",
                                                  "1",
                                                  "-1",
                                                  "9223372036854775807",
                                                  "-9223372036854775808",
                                                  "2147483648",
                                                  "4294967297",
                                                  "1e308",
                                                  "-1e308",
                                                  "5e-324",
                                                  "9e999",
                                                  "-9e999",
                                                  "NULL",
                                                  "''",
                                                  "'x'",
                                                  "'ok'",
                                                  "'failed'",
                                                  "'cpu'",
                                                  "'sim'",
                                                  "'<script>&\"'",
                                                  "'[[[['",
                                                  "'{}'",
                                                  "'null'",
                                                  "'\"auto\"'",
                                                  "'{\"a\":'",
                                                  "char(27) || '[2J' || char(8238)",
                                                  "x'fffe'",
                                                  "CAST(x'c3' AS TEXT)",
                                                  "printf('%100000s', 'x')",
                                                  "'a' || char(0) || 'b'",
                                                  "'../../x'",
                                                  "replace(printf('%2000s', ''), ' ', '[')"};
  return values[random() % values.size()];
}

// Returns what it did, for messages.
std::string mutate(Sql& sql, std::mt19937& random) {
  static const std::vector<std::string> tables = {
      "environments", "scenarios", "runs",     "step_metrics", "memory_peaks",
      "collectives",  "phases",    "warnings", "notes",        "live_runs"};
  for (;;) {
    const std::string& table = random() % 3 == 0 ? tables[2] : tables[random() % tables.size()];
    const auto columns = sql.column("SELECT name FROM pragma_table_info('" + table + "')");
    const std::string& column = columns[random() % columns.size()];
    const std::string which = " WHERE (" + columns[0] + ") IN (SELECT " + columns[0] + " FROM " +
                              table + " LIMIT 1 OFFSET " + std::to_string(random() % 4) + ")";
    std::string change = "UPDATE " + table + " SET " + column + " = " + any_value(random) + which;
    if (random() % 10 == 0) change = "DELETE FROM " + table + which;
    if (table == "scenarios" && random() % 2 == 0) {
      change = "UPDATE scenarios SET json = replace(json, substr(json, " +
               std::to_string(1 + random() % 400) + ", 3), " + any_value(random) + ")";
    }
    if (sql.run(change)) return change;
  }
}

class DamagedDatabase : public testing::Test {
 protected:
  void SetUp() override {
    set_log_level(LogLevel::quiet);
    path_ = folder_ / "runs.db";
    good_ = folder_ / "good.db";
    write_good_database(good_);
  }
  void TearDown() override { set_log_level(LogLevel::info); }

  // What is refused names the file and is fit to be shown.
  template <class Call>
  void survives(Call&& call) {
    try {
      call();
    } catch (const Error& error) {
      const std::string message = error.what();
      EXPECT_NE(message.find(path_), std::string::npos) << message;
      EXPECT_EQ(message.find("json.exception"), std::string::npos) << message;
      EXPECT_LT(message.size(), 2'000u) << message.substr(0, 300);
    } catch (const std::exception& error) {
      ADD_FAILURE() << error.what();
    }
  }

  void read_all() {
    survives([&] {
      Store store = Store::open(path_, Store::Mode::read_only);
      for (const RunSummary& run : store.list()) {
        survives([&] { store.load(run.id); });
        survives([&] { store.environment(run.id); });
        survives([&] { store.scenario_json(run.scenario_hash); });
      }
      survives([&] { store.predictions(); });
      survives([&] { store.live_runs(); });
      const Report report = collect_report(store, path_, {});
      EXPECT_EQ(test::XmlReader::read(report_html(report)).name, "html");
      const std::string markdown = report_markdown(report);
      EXPECT_EQ(visible(markdown), markdown);
    });
  }

  const test::TempFolder folder_;
  std::string path_, good_;
};

TEST_F(DamagedDatabase, OfAnyRowsIsReadOrRefused) {
  std::mt19937 random(20261122);  // deterministic
  for (int i = 0; i < kDatabases && !HasFailure(); ++i) {
    std::filesystem::copy_file(good_, path_, std::filesystem::copy_options::overwrite_existing);
    std::string changes;
    {
      Sql sql(path_);
      for (std::size_t left = 1 + random() % 3; left > 0; --left) {
        changes += mutate(sql, random) + "\n";
      }
    }
    SCOPED_TRACE("database " + std::to_string(i) + ":\n" + changes);
    read_all();
  }
}

TEST_F(DamagedDatabase, SumsThatNoNumberHoldsDamageTheirRunAlone) {
  std::filesystem::copy_file(good_, path_);
  Sql(path_).run("UPDATE memory_peaks SET bytes = 9223372036854775807 WHERE run = 2");
  Store store = Store::open(path_, Store::Mode::read_only);
  EXPECT_EQ(store.list().size(), 3u);
  EXPECT_EQ(collect_report(store, path_, {}).scenarios.at(0).runs.size(), 3u);
}

// It is in no list; a command that asks for it by number must not take it for a run.
TEST_F(DamagedDatabase, ARunWithoutItsScenarioIsRefused) {
  std::filesystem::copy_file(good_, path_);
  Sql(path_).run("UPDATE runs SET scenario = 'lost' WHERE id = 2");
  Store store = Store::open(path_, Store::Mode::read_only);
  EXPECT_EQ(store.list().size(), 3u);
  EXPECT_EQ(store.list({.ids = {2}}).size(), 0u);
  EXPECT_CONTAINS(
      message_of([&] { store.load(2); }),
      path_ + ": damaged: table runs, row of run 2, column scenario: the database has no");
}

TEST_F(DamagedDatabase, RatesThatNoChartShowsAreStillAReport) {
  std::filesystem::copy_file(good_, path_);
  for (const char* rate : {"1e308", "9e999", "5e-324", "-1e308"}) {
    Sql(path_).run(std::string("UPDATE runs SET tokens_per_second = ") + rate);
    read_all();
  }
}

}  // namespace
}  // namespace zl
