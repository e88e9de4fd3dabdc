// Notes, tags, stored scenarios and predictions: what the dashboard asks of the store.
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
