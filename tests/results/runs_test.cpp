// What people do with stored runs: tags, notes, deleting, and databases of several machines.
#include <SQLiteCpp/SQLiteCpp.h>
#include <gtest/gtest.h>

#include "core/base/error.h"
#include "results/schema.h"
#include "results/store.h"
#include "tests/results/fixtures.h"

namespace zl::test {
namespace {

using Ids = std::vector<std::int64_t>;

class Runs : public ::testing::Test {
 protected:
  std::int64_t save(const RunResult& run, const RunLabels& labels = {}) {
    return store_.save(run, a_scenario(), an_environment(), labels);
  }
  int count(const std::string& table) {
    SQLite::Database database(path_.string(), SQLite::OPEN_READONLY);
    return database.execAndGet("SELECT count(*) FROM " + table).getInt();
  }
  RunSummary summary(std::int64_t id) { return store_.list({.ids = {id}}).at(0); }
  // The message of the Error{invalid} that `work` throws.
  template <class Work>
  std::string refusal(Work&& work) {
    try {
      work();
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::invalid);
      return error.what();
    }
    return "nothing was refused";
  }

  TempFolder folder_;
  std::filesystem::path path_ = folder_ / "results.db";
  Store store_ = Store::open(path_, Store::Mode::read_write);
};

Ids ids_of(const std::vector<RunSummary>& runs) {
  Ids ids;
  for (const RunSummary& run : runs) ids.push_back(run.id);
  return ids;
}

TEST_F(Runs, FiltersByTagDayAndId) {
  const auto first = save(a_run("zero-1", "cpu", 1, 10), {.saved_at = "2026-01-31T23:59:59.999Z"});
  const auto second = save(a_run("zero-2", "cpu", 1, 10),
                           {.tags = "base line", .saved_at = "2026-02-01T00:00:00.000Z"});
  const auto third = save(a_run("zero-3", "cpu", 1, 10),
                          {.tags = "baseline", .saved_at = "2026-02-01T12:00:00.000Z"});
  EXPECT_EQ(ids_of(store_.list({.tag = "base"})), Ids{second});
  EXPECT_EQ(ids_of(store_.list({.tag = "line"})), Ids{second});
  EXPECT_EQ(ids_of(store_.list({.tag = "b"})), Ids{});
  EXPECT_EQ(ids_of(store_.list({.since = "2026-02-01"})), (Ids{third, second}));
  EXPECT_EQ(ids_of(store_.list({.until = "2026-02-01"})), (Ids{third, second, first}));
  EXPECT_EQ(ids_of(store_.list({.until = "2026-01-31"})), Ids{first});
  EXPECT_EQ(ids_of(store_.list({.until = "2026-02-01T00:00"})), (Ids{second, first}));
  EXPECT_EQ(ids_of(store_.list({.ids = {third, first}})), (Ids{third, first}));
  const std::string message = refusal([&] { store_.list({.ids = {first, 77, 99}}); });
  EXPECT_NE(message.find("no run 77, 99; `zerolab runs` lists"), std::string::npos) << message;
}

TEST_F(Runs, SummariesSayWhatWasRun) {
  ScenarioRecord scenario = a_scenario();
  scenario.json =
      R"({"model":{"name":"llama3-8b"},"cluster":"8xh100","strategies":[{
      "train_micro_batch_size_per_gpu":2,"gradient_accumulation_steps":3}],
      "run":{"steps":60,"sequence_length":8192,"data":"book.txt"}})";
  RunResult run = a_full_run();
  run.outcome = Outcome::interrupted;
  run.message = "interrupted after 53 of 60 steps";
  const auto id = store_.save(run, scenario, an_environment());
  const RunSummary read = summary(id);
  EXPECT_EQ(read.outcome, Outcome::interrupted);
  EXPECT_EQ(read.message, run.message);
  EXPECT_EQ(read.model, "llama3-8b");
  EXPECT_EQ(read.cluster, "8xh100");
  EXPECT_EQ(read.software, "torch-fsdp2") << "the run's, which the scenario left to a default";
  EXPECT_EQ(read.data, "book.txt");
  EXPECT_EQ(read.precision, "bf16");
  EXPECT_EQ(read.first_step, 12);
  EXPECT_EQ(read.planned_steps, 60);
  EXPECT_EQ(read.sequence_length, 8192);
  EXPECT_EQ(read.micro_batch, 2);
  EXPECT_EQ(read.gradient_accumulation, 3);
  EXPECT_EQ(read.tokens_per_step(),
            420);                 // as the run says: not all its ranks need have other data
  run.setup.tokens_per_step = 0;  // of a database from before
  EXPECT_EQ(summary(store_.save(run, scenario, an_environment())).tokens_per_step(),
            4 * 2 * 3 * 8192);
}

// Two scenarios of one content share its row, but each run says whose it is.
TEST_F(Runs, CarryTheNameOfTheirScenario) {
  ScenarioRecord other = a_scenario();
  const auto first = save(a_run("zero-1", "sim", 1, 10));
  other.name = "llama3-8b-node";
  const auto second = store_.save(a_run("zero-1", "sim", 1, 10), other, an_environment());
  EXPECT_EQ(summary(first).scenario_name, "demo");
  EXPECT_EQ(summary(second).scenario_name, "llama3-8b-node");
  EXPECT_EQ(count("scenarios"), 1);
  EXPECT_EQ(count("strategy_table"), 2);
}

TEST_F(Runs, WhatWasInterruptedHidesNoResultAndPredictsNothing) {
  const auto finished = save(a_run("zero-1", "cpu", 1, 10));
  RunResult cut = a_run("zero-1", "cpu", 1, 10);
  cut.outcome = Outcome::interrupted;
  save(cut);
  SQLite::Database database(path_.string(), SQLite::OPEN_READONLY);
  EXPECT_EQ(database.execAndGet("SELECT group_concat(run) FROM strategy_table").getString(),
            std::to_string(finished));
}

TEST_F(Runs, TagsAddUpAndGo) {
  const Ids ids{save(a_run("zero-1", "cpu", 1, 10), {.note = "keep me", .tags = "old"}),
                save(a_run("zero-2", "cpu", 1, 10))};
  store_.tag(ids, "baseline old");
  EXPECT_EQ(summary(ids[0]).tags, "old baseline");
  EXPECT_EQ(summary(ids[0]).note, "keep me");
  EXPECT_EQ(summary(ids[1]).tags, "baseline old");
  store_.untag(ids, "old never-there");
  EXPECT_EQ(summary(ids[0]).tags, "baseline");
  store_.note(ids, "of the paper");
  EXPECT_EQ(summary(ids[1]).note, "of the paper");
  EXPECT_EQ(summary(ids[1]).tags, "baseline");
  refusal([&] { store_.tag(ids, "../x"); });
  EXPECT_EQ(summary(ids[0]).tags, "baseline");
}

TEST_F(Runs, ChangesOfSeveralRunsAreAllOrNothing) {
  const auto id = save(a_full_run());
  const Ids wrong{id, 41, 42};
  const auto named = [](const std::string& message) {
    return message.find("has no run 41, 42") != std::string::npos;
  };
  EXPECT_TRUE(named(refusal([&] { store_.tag(wrong, "t"); })));
  EXPECT_TRUE(named(refusal([&] { store_.note(wrong, "t"); })));
  EXPECT_TRUE(named(refusal([&] { store_.remove(wrong); })));
  EXPECT_EQ(summary(id).tags, "");
  EXPECT_EQ(summary(id).note, "");
}

TEST_F(Runs, DeletingTakesAllThatIsTheirsAndNoIdComesBack) {
  const auto first = save(a_full_run(), {.note = "n", .tags = "t"});
  const auto last = save(a_full_run());
  store_.remove(Ids{last});
  EXPECT_EQ(count("scenarios"), 1);
  EXPECT_EQ(count("notes"), 1);
  EXPECT_GT(save(a_full_run()), last);
  store_.remove(ids_of(store_.list()));
  for (const char* table : {"runs", "scenarios", "environments", "step_metrics", "memory_peaks",
                            "collectives", "phases", "warnings", "notes"}) {
    EXPECT_EQ(count(table), 0) << table;
  }
  EXPECT_GT(first, 0);
}

TEST_F(Runs, MergingTwiceAddsNothing) {
  RunResult odd = a_full_run();
  odd.mfu = std::numeric_limits<double>::quiet_NaN();
  save(odd);
  save(a_full_run(), {.note = "mine"});
  Store there = Store::open(folder_ / "there.db", Store::Mode::read_write);
  Environment machine = an_environment();
  machine.host = "other";
  ScenarioRecord scenario = a_scenario();
  scenario.hash = "fedc";
  const auto theirs = there.save(a_full_run(), scenario, machine, {.note = "n", .tags = "a b"});
  for (const bool again : {false, true}) {
    const Store::Merged merged = store_.merge(there);
    EXPECT_EQ(merged.added, again ? 0 : 1);
    EXPECT_EQ(merged.present, again ? 1 : 0);
  }
  ASSERT_EQ(store_.list().size(), 3u);
  const RunSummary added = store_.list().at(0);
  EXPECT_EQ(added.saved_at, there.list().at(0).saved_at);
  EXPECT_EQ(added.note, "n");
  EXPECT_EQ(added.tags, "a b");
  EXPECT_EQ(store_.environment(added.id).host, "other");
  EXPECT_EQ(store_.scenario_json("fedc"), scenario.json);
  RunResult expected = there.load(theirs);
  expected.run_id = added.id;
  EXPECT_TRUE(store_.load(added.id) == expected);
  // And back: each has what both had.
  EXPECT_EQ(there.merge(store_).added, 2);
  EXPECT_EQ(there.merge(store_).added, 0);
  EXPECT_EQ(store_.merge(there).added, 0);
  EXPECT_EQ(store_.list({.ids = {2}}).at(0).note, "mine");
}

// Notes of a run that came without them are taken later; what was said here stays.
TEST_F(Runs, MergingTakesNotesWhereThereAreNone) {
  const auto id = save(a_full_run());
  Store there = Store::in_memory();
  there.merge(store_);
  there.annotate(1, "new", "t");
  EXPECT_EQ(store_.merge(there).present, 1);
  EXPECT_EQ(summary(id).note, "new");
  there.annotate(1, "newer", "u");
  store_.merge(there);
  EXPECT_EQ(summary(id).note, "new");
}

TEST_F(Runs, MergesWhatTheFilterTakes) {
  save(a_run("zero-1", "cpu", 1, 10), {.tags = "good"});
  save(a_run("zero-2", "cpu", 1, 10));
  Store there = Store::in_memory();
  EXPECT_EQ(there.merge(store_, {.tag = "good"}).added, 1);
  EXPECT_EQ(there.list().at(0).strategy, "zero-1");
  there.write_copy(folder_ / "export.db");
  EXPECT_EQ(Store::open(folder_ / "export.db", Store::Mode::read_only).list().size(), 1u);
  EXPECT_THROW(there.write_copy(folder_ / "export.db"), Error);
}

// A database of an older zerolab is read without being changed.
TEST_F(Runs, AnOlderDatabaseIsCopiedAndLeftAsItIs) {
  const auto old_path = folder_ / "old.db";
  {
    SQLite::Database old(old_path.string(), SQLite::OPEN_READWRITE | SQLite::OPEN_CREATE);
    for (const char* migration : migrations().first(6)) old.exec(migration);
    old.exec("PRAGMA application_id = " + std::to_string(kApplicationId));
    old.exec("PRAGMA user_version = 6");
    old.exec("INSERT INTO scenarios VALUES ('h', 'kept', '{}')");
    old.exec(
        "INSERT INTO environments (host, os, kernel, cpu, cores, memory_bytes, gpu, driver,"
        " compiler, build, git_commit) VALUES ('', '', '', '', 1, 1, '', '', '', '', '')");
    old.exec(
        "INSERT INTO runs (scenario, environment, strategy, backend, outcome, message, ranks,"
        " steps, skipped_steps, mfu_convention, reserved_device_bytes, wire_bytes_per_step,"
        " op_count, op_sequence_hash) VALUES ('h', 1, 'zero-2', 'cpu', 'ok', '', 4, 3, 0, '6N',"
        " 4096, 64, 9, 11)");
    old.exec("INSERT INTO step_metrics VALUES (1, 'loss', 0, 5.5), (1, 'loss', 1, 4.5)");
    old.exec("INSERT INTO notes VALUES (1, 'first', 'a')");
  }
  const std::string before = bytes_of(old_path);
  Store copy = Store::open_copy(old_path);
  EXPECT_EQ(store_.merge(copy).added, 1);
  EXPECT_EQ(bytes_of(old_path), before);
  const RunSummary run = store_.list().at(0);
  EXPECT_EQ(run.scenario_name, "kept");
  EXPECT_EQ(run.note, "first");
  EXPECT_EQ(store_.load(run.id).loss, (std::vector<double>{5.5, 4.5}));
  // Brought up to date in place it keeps the rows that refer to runs, too.
  Store updated = Store::open(old_path, Store::Mode::read_write);
  EXPECT_EQ(updated.load(1).loss.size(), 2u);
  EXPECT_EQ(updated.list().at(0).note, "first");
  EXPECT_EQ(store_.merge(updated).added, 0);
  EXPECT_THROW(Store::open_copy(folder_ / "none.db"), Error);
}

}  // namespace
}  // namespace zl::test
