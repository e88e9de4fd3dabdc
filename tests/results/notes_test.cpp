// Notes, tags, stored scenarios and predictions: what the dashboard asks of the store.
#include <SQLiteCpp/SQLiteCpp.h>
#include <gtest/gtest.h>

#include "core/base/error.h"
#include "tests/results/fixtures.h"

namespace zl::test {
namespace {

TEST(Notes, AreListedWithTheRunAndReplaced) {
  const TempFolder folder;
  Store store = Store::open(folder / "runs.db", Store::Mode::read_write);
  const auto id = store.save(a_full_run(), a_scenario(), an_environment());
  const auto other = store.save(a_full_run(), a_scenario(), an_environment());
  store.annotate(id, "first \"try\"", "good slow");
  store.annotate(id, "second try", "good");
  const auto runs = store.list();
  ASSERT_EQ(runs.size(), 2u);
  EXPECT_EQ(runs[1].note, "second try");
  EXPECT_EQ(runs[1].tags, "good");
  EXPECT_EQ(runs[0].id, other);
  EXPECT_EQ(runs[0].note, "");
  EXPECT_THROW(store.annotate(99, "no such run", ""), Error);
}

TEST(LiveRuns, GrowAndGoAndTheDeadAreForgotten) {
  const TempFolder folder;
  Store writer = Store::open(folder / "runs.db", Store::Mode::read_write);
  Store reader = Store::open(folder / "runs.db", Store::Mode::read_only);
  const auto first = writer.begin_live({0, "demo", "zero-1", "cpu", 20, {}});
  const auto second = writer.begin_live({0, "demo", "zero-2", "cpu", 20, {}});
  writer.update_live(second, 8, {5.5, 5.25});
  auto live = reader.live_runs();
  ASSERT_EQ(live.size(), 2u);
  EXPECT_EQ(live[0].strategy, "zero-1");
  EXPECT_TRUE(live[0].loss.empty());
  EXPECT_EQ(live[1].steps, 20);
  EXPECT_EQ(live[1].first_step, 8);
  EXPECT_EQ(live[1].loss, (std::vector{5.5, 5.25}));
  writer.end_live(first);
  EXPECT_EQ(reader.live_runs().size(), 1u);
  SQLite::Database raw((folder / "runs.db").string(), SQLite::OPEN_READWRITE);
  raw.exec("UPDATE live_runs SET updated = updated - 601");
  EXPECT_TRUE(reader.live_runs().empty());
  writer.begin_live({0, "demo", "zero-3", "cpu", 20, {}});
  EXPECT_EQ(raw.execAndGet("SELECT count(*) FROM live_runs").getInt(), 1) << "the dead row is gone";
}

TEST(Scenarios, ComeBackAsStored) {
  const TempFolder folder;
  Store store = Store::open(folder / "runs.db", Store::Mode::read_write);
  store.save(a_full_run(), a_scenario(), an_environment());
  EXPECT_EQ(store.scenario_json(a_scenario().hash), a_scenario().json);
  EXPECT_THROW(store.scenario_json("unknown"), Error);
}

TEST(Predictions, PairTheLatestRunsOfAScenario) {
  const TempFolder folder;
  Store store = Store::open(folder / "runs.db", Store::Mode::read_write);
  RunResult measured;
  measured.strategy = "zero-1";
  measured.backend = "cpu";
  measured.step_time = {0.2, 0.2, 0.2};
  measured.peak_device.tag[0] = 1000;
  measured.wire_bytes_per_step = 10;
  RunResult simulated = measured;
  simulated.backend = "sim";
  simulated.step_time = {0.25, 0.25, 0.25};
  simulated.step_time_low = 0.15;
  simulated.step_time_high = 0.35;
  const auto first = store.save(measured, a_scenario(), an_environment());
  EXPECT_TRUE(store.predictions().empty());
  const auto second = store.save(simulated, a_scenario(), an_environment());
  const auto pairs = store.predictions();
  ASSERT_EQ(pairs.size(), 1u);
  EXPECT_EQ(pairs[0].measured_run, first);
  EXPECT_EQ(pairs[0].simulated_run, second);
  EXPECT_DOUBLE_EQ(pairs[0].step_time_error, 0.25);
  EXPECT_DOUBLE_EQ(pairs[0].peak_device_error, 0);
  EXPECT_DOUBLE_EQ(pairs[0].measured_step_time, 0.2);
  EXPECT_DOUBLE_EQ(pairs[0].simulated_low, 0.15);
  EXPECT_DOUBLE_EQ(pairs[0].simulated_high, 0.35);
}

TEST(DataVersion, TellsWhenAnotherConnectionWrote) {
  const TempFolder folder;
  Store writer = Store::open(folder / "runs.db", Store::Mode::read_write);
  Store reader = Store::open(folder / "runs.db", Store::Mode::read_only);
  const auto before = reader.data_version();
  EXPECT_EQ(reader.data_version(), before);
  writer.save(a_full_run(), a_scenario(), an_environment());
  EXPECT_NE(reader.data_version(), before);
}

}  // namespace
}  // namespace zl::test
