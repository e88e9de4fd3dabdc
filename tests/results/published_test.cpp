// Published runs beside their predictions, in the database.
#include <SQLiteCpp/SQLiteCpp.h>
#include <gtest/gtest.h>

#include "core/base/error.h"
#include "results/store.h"
#include "tests/results/fixtures.h"

namespace zl::test {
namespace {

PublishedPrediction a_time() {
  return {.run = "a \"run\"",
          .source = "a paper",
          .link = "https://example.org/paper",
          .software = "megatron-core",
          .gpu = "h100",
          .measured = 2.5,
          .predicted = 2.0,
          .low = 1.5,
          .high = 3.0,
          .left_out = 1.75,
          .is_composed = true,
          .measurements = {2.25, 2.5, 3.0}};
}

TEST(Published, TheNewestPredictionOfEachRunStays) {
  Store store = Store::in_memory();
  EXPECT_TRUE(store.published().empty());
  PublishedPrediction time = a_time(), bytes = a_time();
  bytes.is_memory = true;
  bytes.measured = 8e10;
  store.keep_published(std::vector{time, bytes});
  time.predicted = 2.25;
  store.keep_published({&time, 1});
  const auto all = store.published();
  ASSERT_EQ(all.size(), 2U) << "a time and bytes of one run";
  EXPECT_TRUE(all[0].is_memory);
  EXPECT_EQ(all[0].measured, 8e10);
  EXPECT_EQ(all[1].run, time.run);
  EXPECT_EQ(all[1].predicted, 2.25);
  EXPECT_EQ(all[1].link, time.link);
  EXPECT_EQ(all[1].high, 3.0);
  EXPECT_EQ(all[1].left_out, 1.75);
  EXPECT_TRUE(all[1].is_composed);
  EXPECT_EQ(all[1].measurements, time.measurements);
  EXPECT_EQ(all[1].predicted_at.substr(0, 2), "20");
}

// Each statement damages a row in the column of that name.
TEST(Published, ADamagedRowIsNamed) {
  const PublishedPrediction time = a_time();
  for (const auto& [column, value] : {std::pair{"quantity", "'luck'"},
                                      {"measurements", "'[1, true]'"},
                                      {"measurements", "'[1'"}}) {
    TempFolder folder;
    const auto path = folder / "results.db";
    Store::open(path, Store::Mode::read_write).keep_published({&time, 1});
    SQLite::Database raw(path.string(), SQLite::OPEN_READWRITE);
    raw.exec("PRAGMA ignore_check_constraints = ON");
    raw.exec(std::string("UPDATE published SET ") + column + " = " + value);
    Store store = Store::open(path, Store::Mode::read_only);
    try {
      store.published();
      ADD_FAILURE() << "read " << value;
    } catch (const Error& error) {
      const std::string message = error.what();
      EXPECT_NE(message.find("table published"), std::string::npos) << message;
      EXPECT_NE(message.find(column), std::string::npos) << message;
    }
  }
}

}  // namespace
}  // namespace zl::test
