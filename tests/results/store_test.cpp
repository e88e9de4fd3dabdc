// What is saved comes back: every field, the list, and the views users query.
#include "results/store.h"

#include <SQLiteCpp/SQLiteCpp.h>
#include <gtest/gtest.h>

#include <tuple>
#include <utility>

#include "core/base/error.h"
#include "tests/results/fixtures.h"

namespace zl::test {
namespace {

class StoreTest : public ::testing::Test {
 protected:
  std::int64_t save(const RunResult& run) {
    return store_.save(run, a_scenario(), an_environment());
  }
  SQLite::Database raw() { return {path_.string(), SQLite::OPEN_READWRITE}; }

  TempFolder folder_;
  std::filesystem::path path_ = folder_ / "new/sub/results.db";
  Store store_ = Store::open(path_, Store::Mode::read_write);
};

// The fields of a struct as one tuple: a new field does not compile until it stands here.
auto fields(const RunResult& run) {
  const auto& [strategy, backend, predicted, precision, outcome, message, ranks, steps, first_step,
               run_id, loss, grad_norm, learning_rate, step_seconds, loss_scale, skipped_steps,
               evaluations, best_before, tokens_per_second, step_time, step_time_low,
               step_time_high, own_step_error, priced_from, model_flops_per_step, mfu,
               mfu_convention, peak_device, peak_host, peak_nvme, reserved_device, reserved_host,
               device_capacity, need, software_held, communication, wire_bytes_per_step, time, rank,
               stages, labels, op_count, op_sequence_hash, warnings, setup] = run;
  return std::tie(
      strategy, backend, predicted, precision, outcome, message, ranks, steps, first_step, run_id,
      loss, grad_norm, learning_rate, step_seconds, loss_scale, skipped_steps, evaluations,
      best_before, tokens_per_second, step_time, step_time_low, step_time_high, own_step_error,
      priced_from, model_flops_per_step, mfu, mfu_convention, peak_device, peak_host, peak_nvme,
      reserved_device, reserved_host, device_capacity, need, software_held, communication,
      wire_bytes_per_step, time, rank, stages, labels, op_count, op_sequence_hash, warnings, setup);
}

auto fields(const MemoryNeed& need) {
  const auto& [in_use, reserved, host, nvme] = need;
  return std::tie(in_use, reserved, host, nvme);
}

auto fields(const HeldBySoftware& held) {
  const auto& [in_use, device, low, high, when] = held;
  return std::tie(in_use, device, low, high, when);
}

auto fields(const LabelScores& labels) {
  const auto& [data, rows, loss, accuracy, low, high, f1, majority, majority_f1, words, words_f1,
               by_label] = labels;
  return std::tie(data, rows, loss, accuracy, low, high, f1, majority, majority_f1, words, words_f1,
                  by_label);
}

auto fields(const RunSetup& setup) {
  const auto& [model, cluster, software, data, eval_data, sequence_length, micro_batch,
               gradient_accumulation, tokens_per_step] = setup;
  return std::tie(model, cluster, software, data, eval_data, sequence_length, micro_batch,
                  gradient_accumulation, tokens_per_step);
}

auto fields(const StepTime& time) {
  const auto& [median, min, max] = time;
  return std::tie(median, min, max);
}

auto fields(const TimeBreakdown& time) {
  const auto& [compute, exposed_communication, offload_stall, bubble, optimizer, exposed_tensor,
               exposed_pipeline] = time;
  return std::tie(compute, exposed_communication, offload_stall, bubble, optimizer, exposed_tensor,
                  exposed_pipeline);
}

auto fields(const CollectiveTotals& totals) {
  const auto& [collective, group, axis, link, count, bytes] = totals;
  return std::tie(collective, group, axis, link, count, bytes);
}

auto fields(const StageResult& stage) {
  const auto& [rank, ranks, peak_device, reserved_device, step_seconds, time] = stage;
  return std::tie(rank, ranks, peak_device, reserved_device, step_seconds, time);
}

auto fields(const TaggedBytes& bytes) {
  return std::apply([](const auto&... tag) { return std::tie(tag...); }, bytes.tag);
}

template <class T>
concept Compound = requires(const T& value) {
  fields(value);
};

// Names by position each field, at any depth, that is as in a default-made object.
template <Compound T>
void expect_no_defaults(const T& full, const std::string& where) {
  const T made;
  int at = 0;
  const auto check = [&](const auto& value, const auto& standard) {
    const std::string name = where + "." + std::to_string(at++);
    EXPECT_FALSE(value == standard) << name;
    if constexpr (Compound<std::decay_t<decltype(value)>>) expect_no_defaults(value, name);
  };
  const auto values = fields(full), standards = fields(made);
  [&]<std::size_t... I>(std::index_sequence<I...>) {
    (check(std::get<I>(values), std::get<I>(standards)), ...);
  }
  (std::make_index_sequence<std::tuple_size_v<decltype(values)>>());
}

// -1: none.
int first_difference(const RunResult& a, const RunResult& b) {
  int at = 0, found = -1;
  const auto check = [&](const auto& one, const auto& other) {
    if (found < 0 && !(one == other)) found = at;
    ++at;
  };
  const auto left = fields(a), right = fields(b);
  [&]<std::size_t... I>(std::index_sequence<I...>) {
    (check(std::get<I>(left), std::get<I>(right)), ...);
  }
  (std::make_index_sequence<std::tuple_size_v<decltype(left)>>());
  return found;
}

TEST(Fixture, SetsEveryField) {
  const RunResult run = a_full_run();
  expect_no_defaults(run, "run");
  for (const CollectiveTotals& totals : run.communication) expect_no_defaults(totals, "totals");
  for (const StageResult& stage : run.stages) expect_no_defaults(stage, "stage");
}

TEST_F(StoreTest, RoundTripOfEveryField) {
  RunResult run = a_full_run();
  const std::int64_t id = save(run);
  EXPECT_NE(id, run.run_id);
  run.run_id = id;
  EXPECT_TRUE(store_.load(id) == run) << "field " << first_difference(store_.load(id), run);
}

TEST_F(StoreTest, NotANumberComesBack) {
  RunResult run = a_full_run();
  const double nan = std::numeric_limits<double>::quiet_NaN();
  run.loss = {nan, 2.5};
  run.mfu = nan;
  const RunResult back = store_.load(save(run));
  ASSERT_EQ(back.loss.size(), 2u);
  EXPECT_TRUE(std::isnan(back.loss[0]));
  EXPECT_EQ(back.loss[1], 2.5);
  EXPECT_TRUE(std::isnan(back.mfu));
}

// Whole picoseconds come back exactly; everything else within half of one.
TEST_F(StoreTest, TimesAreKeptToThePicosecond) {
  RunResult run = a_full_run();
  run.step_time = {.median = 1.0 / 3, .min = 7e-12, .max = 123.456789};
  run.time.bubble = std::numeric_limits<double>::quiet_NaN();
  run.time.optimizer = 1e9;  // too long for 64 bits of picoseconds
  const RunResult back = store_.load(save(run));
  EXPECT_NEAR(back.step_time.median, run.step_time.median, 0.51e-12);
  EXPECT_EQ(back.step_time.min, 7e-12);
  EXPECT_NEAR(back.step_time.max, run.step_time.max, 0.51e-12);
  EXPECT_EQ(back.step_time_low, run.step_time_low);
  EXPECT_EQ(back.step_time_high, run.step_time_high);
  EXPECT_EQ(back.time.compute, run.time.compute);
  EXPECT_EQ(back.time.exposed_communication, run.time.exposed_communication);
  EXPECT_EQ(back.time.offload_stall, run.time.offload_stall);
  EXPECT_TRUE(std::isnan(back.time.bubble));
  EXPECT_TRUE(std::isnan(back.time.optimizer));
  auto database = raw();
  EXPECT_EQ(database.execAndGet("SELECT step_time_min_ps FROM runs").getInt64(), 7);
  EXPECT_STREQ(database.execAndGet("SELECT typeof(time_ps) FROM phases WHERE name = 'compute'"),
               "integer");
}

TEST_F(StoreTest, ScenarioAndEnvironmentAreStoredOnce) {
  save(a_full_run());
  save(a_full_run());
  Environment other = an_environment();
  other.commit = "def456";
  store_.save(a_full_run(), a_scenario(), other);
  auto database = raw();
  EXPECT_EQ(database.execAndGet("SELECT count(*) FROM runs").getInt(), 3);
  EXPECT_EQ(database.execAndGet("SELECT count(*) FROM scenarios").getInt(), 1);
  EXPECT_EQ(database.execAndGet("SELECT count(*) FROM environments").getInt(), 2);
  EXPECT_EQ(database
                .execAndGet("SELECT concat FROM (SELECT host || '|' || os || '|' || kernel || '|' "
                            "|| cpu || '|' || cores || '|' || memory_bytes || '|' || gpu || '|' || "
                            "driver || '|' || compiler || '|' || build || '|' || git_commit AS "
                            "concat FROM environments WHERE id = 1)")
                .getString(),
            "box|Debian 12|Linux 6.1|Xeon|2|8000000000|H200|570|GNU 12.2|Release|abc123");
  EXPECT_EQ(
      database.execAndGet("SELECT name || (json ->> '$.model.name') FROM scenarios").getString(),
      "demogpt2-tiny");
}

TEST_F(StoreTest, ListFiltersNewestFirst) {
  const auto first = save(a_run("zero-1", "cpu", 1, 10));
  save(a_run("zero-2", "sim", 2, 20));
  RunResult last = a_run("zero-1", "cpu", 3, 30);
  last.loss = {5, 4};
  last.learning_rate = {1e-3, 2e-3};
  last.evaluations = {{.step = 1, .loss = 5.5, .tokens = 8}, {.step = 2, .loss = 6.5, .tokens = 8}};
  last.wire_bytes_per_step = 7;
  const auto third = save(last);
  ASSERT_EQ(store_.list().size(), 3u);
  const auto runs = store_.list({.scenario_hash = "5ce0a210",
                                 .scenario_name = "demo",
                                 .strategy = "zero-1",
                                 .backend = "cpu",
                                 .limit = 0});
  ASSERT_EQ(runs.size(), 2u);
  EXPECT_EQ(runs[0].id, third);
  EXPECT_EQ(runs[1].id, first);
  EXPECT_EQ(runs[0].final_loss, 4);
  EXPECT_TRUE(std::isnan(runs[1].final_loss));
  EXPECT_EQ(runs[0].learning_rate, 2e-3);
  EXPECT_EQ(runs[0].best_validation_loss, 5.5);
  EXPECT_TRUE(std::isnan(runs[1].learning_rate));
  EXPECT_TRUE(std::isnan(runs[1].best_validation_loss));
  EXPECT_EQ(runs[0].step_time_median, 3);
  EXPECT_EQ(runs[0].peak_device_bytes, 30);
  EXPECT_EQ(runs[0].wire_bytes_per_step, 7);
  EXPECT_EQ(runs[0].scenario_name, "demo");
  EXPECT_EQ(runs[0].saved_at.size(), std::string("2026-01-01T00:00:00.000Z").size());
  RunFilter one;
  one.limit = 1;
  EXPECT_EQ(store_.list(one).size(), 1u);
  one.scenario_hash = "other";
  EXPECT_TRUE(store_.list(one).empty());
}

TEST_F(StoreTest, ReadsSimulatedRunsAsPredictions) {
  const auto simulated = save(a_run("zero-1", "sim", 4, 40));
  const auto measured = save(a_run("zero-1", "cpu", 4, 40));
  EXPECT_TRUE(store_.load(simulated).predicted);
  EXPECT_FALSE(store_.load(measured).predicted);
  const auto runs = store_.list({});
  EXPECT_FALSE(runs.at(0).predicted);
  EXPECT_TRUE(runs.at(1).predicted);
}

TEST_F(StoreTest, UnknownRunIsNamed) {
  try {
    store_.load(42);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::invalid);
    EXPECT_NE(std::string(error.what()).find("no run 42"), std::string::npos);
  }
}

TEST_F(StoreTest, RefusedValuesLeaveNothingBehind) {
  ScenarioRecord broken = a_scenario();
  broken.json = "{not json";
  EXPECT_THROW(store_.save(a_full_run(), broken, an_environment()), Error);
  RunResult run = a_full_run();
  run.backend = "abacus";
  EXPECT_THROW(save(run), Error);
  auto database = raw();
  for (const char* table : {"runs", "scenarios", "environments", "step_metrics"}) {
    EXPECT_EQ(database.execAndGet(std::string("SELECT count(*) FROM ") + table).getInt(), 0)
        << table;
  }
}

TEST_F(StoreTest, StrictTablesRejectTheWrongType) {
  const auto id = std::to_string(save(a_full_run()));
  auto database = raw();
  EXPECT_THROW(database.exec("UPDATE runs SET mfu = 'fast'"), SQLite::Exception);
  EXPECT_THROW(database.exec("UPDATE memory_peaks SET bytes = 1.5"), SQLite::Exception);
  EXPECT_THROW(database.exec("INSERT INTO step_metrics VALUES (" + id + ", 'loss', 99, 'low')"),
               SQLite::Exception);
  EXPECT_EQ(
      database
          .execAndGet("SELECT count(*) FROM sqlite_schema WHERE type = 'table'"
                      " AND sql NOT LIKE '%STRICT%' AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\'")
          .getInt(),
      0);
}

TEST_F(StoreTest, DeletingARunDeletesItsRows) {
  save(a_full_run());
  auto database = raw();
  database.exec("PRAGMA foreign_keys = ON");
  database.exec("DELETE FROM runs");
  for (const char* table : {"step_metrics", "memory_peaks", "collectives", "phases", "warnings"}) {
    EXPECT_EQ(database.execAndGet(std::string("SELECT count(*) FROM ") + table).getInt(), 0)
        << table;
  }
}

TEST_F(StoreTest, SimVsMeasuredJoinsTheLatestOfEach) {
  save(a_run("zero-2", "cpu", 9, 90));  // superseded
  RunResult measured = a_run("zero-2", "cpu", 2, 1000);
  measured.wire_bytes_per_step = 400;
  const auto measured_id = save(measured);
  RunResult simulated = a_run("zero-2", "sim", 1.5, 1100);
  simulated.wire_bytes_per_step = 400;
  const auto simulated_id = save(simulated);
  RunResult crashed = a_run("zero-2", "cpu", 0, 0);
  crashed.outcome = Outcome::failed;
  save(crashed);                        // hides nothing
  save(a_run("zero-3", "cpu", 1, 10));  // never simulated
  ScenarioRecord other = a_scenario();
  other.hash = "other";
  store_.save(a_run("zero-3", "sim", 1, 10), other, an_environment());  // another scenario

  auto database = raw();
  SQLite::Statement row(database, "SELECT * FROM sim_vs_measured");
  ASSERT_TRUE(row.executeStep());
  EXPECT_EQ(row.getColumn("strategy").getString(), "zero-2");
  EXPECT_EQ(row.getColumn("measured_backend").getString(), "cpu");
  EXPECT_EQ(row.getColumn("measured_run").getInt64(), measured_id);
  EXPECT_EQ(row.getColumn("simulated_run").getInt64(), simulated_id);
  EXPECT_DOUBLE_EQ(row.getColumn("step_time_error_percent").getDouble(), -25);
  EXPECT_DOUBLE_EQ(row.getColumn("peak_device_error_percent").getDouble(), 10);
  EXPECT_EQ(row.getColumn("wire_bytes_error_percent").getDouble(), 0);
  EXPECT_FALSE(row.executeStep());
}

TEST_F(StoreTest, ParetoKeepsTheStrategiesNoOtherBeats) {
  save(a_run("ddp", "sim", 1, 400));
  save(a_run("zero-1", "sim", 1, 300));  // as fast as ddp, smaller
  save(a_run("zero-3", "sim", 2, 100));
  save(a_run("slow", "sim", 3, 200));  // zero-3 is better in both
  RunResult failed = a_run("big", "sim", 0.1, 1);
  failed.outcome = Outcome::out_of_memory;
  save(failed);
  save(a_run("measured", "cpu", 0.5, 50));  // another backend
  auto database = raw();
  EXPECT_EQ(database
                .execAndGet("SELECT group_concat(strategy) FROM (SELECT strategy FROM pareto"
                            " WHERE backend = 'sim' ORDER BY strategy)")
                .getString(),
            "zero-1,zero-3");
  EXPECT_EQ(database.execAndGet("SELECT count(*) FROM strategy_table").getInt(), 6);
}

}  // namespace
}  // namespace zl::test
