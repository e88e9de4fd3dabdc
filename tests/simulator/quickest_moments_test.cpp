#include "simulator/quickest_moments.h"

#include <gtest/gtest.h>

#include <cmath>
#include <deque>
#include <limits>

#include "simulator/timeline.h"
#include "tests/simulator/trace_builder.h"

namespace zl::sim {
namespace {

using test::kMain;
using test::plain_cluster;
using test::TraceBuilder;

class QuickestMoments : public testing::Test {
 protected:
  // A run whose steps after the first take so many microseconds.
  void add(int run, const std::vector<std::int64_t>& steps) {
    TraceBuilder& builder = programs_.emplace_back();
    std::int64_t now = 1000;
    const auto step = [&](int number, std::int64_t microseconds) {
      builder.scope.step = number;
      builder.op(kMain, 1).timing = {now, now + 1000 * microseconds};
      now += 1000 * microseconds;
    };
    step(1, 70'000);  // warms up
    for (std::size_t i = 0; i < steps.size(); ++i) step(static_cast<int>(i) + 2, steps[i]);
    runs.push_back({&builder.trace, 2, run});
  }
  std::vector<int> kept() const {
    std::vector<int> numbers;
    for (const MeasuredTrace& each : runs) numbers.push_back(each.run);
    return numbers;
  }

  std::vector<int> moments() const {
    std::vector<int> numbers;
    for (const MeasuredTrace& each : runs) numbers.push_back(each.moments);
    return numbers;
  }

  std::vector<MeasuredTrace> runs;

 private:
  std::deque<TraceBuilder> programs_;
};

TEST_F(QuickestMoments, CountAndTheOthersTellTheDrift) {
  add(0, {300, 310, 900});  // their medians: 310, ..
  add(1, {50});
  add(2, {200, 190, 210});
  add(3, {40});
  add(4, {240, 100, 260});
  add(5, {80});
  add(6, {7});  // has no other moment
  const double drift = keep_quickest(runs, [](int run) {
    return run == 6 ? "alone" : run % 2 == 0 ? "even" : "odd";
  });
  EXPECT_EQ(kept(), (std::vector<int>{2, 3, 6}));
  EXPECT_EQ(moments(), (std::vector<int>{3, 3, 1}));
  double squares = 0;
  for (const double longer : {310.0 / 200, 240.0 / 200, 50.0 / 40, 80.0 / 40}) {
    squares += std::log(longer) * std::log(longer);
  }
  EXPECT_NEAR(drift, std::sqrt(squares / 4), 1e-12);
}

TEST_F(QuickestMoments, WhatWasRunMoreOftenDriftsNoMore) {
  add(0, {200});
  add(1, {240});
  for (int run = 2; run < 6; ++run) add(run, {run == 2 ? 100 : 150});
  const double drift = keep_quickest(runs, [](int run) { return run < 2 ? "settled" : "not"; });
  const double twice = std::log(1.2), often = std::log(1.5);
  EXPECT_NEAR(drift, std::sqrt((twice * twice + often * often) / 2), 1e-12);
}

TEST_F(QuickestMoments, AreSettledWhereTheTwoQuickestAgree) {
  EXPECT_FALSE(is_settled({}));
  EXPECT_FALSE(is_settled({0.2}));
  EXPECT_FALSE(is_settled({0.2, 0.211}));
  EXPECT_FALSE(is_settled({0.3, 0.2, 0.3}));
  EXPECT_TRUE(is_settled({0.2, 0.209}));
  EXPECT_TRUE(is_settled({0.209, 0.4, 0.2}));
}

TEST_F(QuickestMoments, TypicalIsTheMedianStep) {
  add(0, {300, 310, 900});
  add(1, {});
  EXPECT_NEAR(typical_step(runs[0]), 310e-6, 1e-12);
  EXPECT_EQ(typical_step(runs[1]), std::numeric_limits<double>::infinity());
}

TEST_F(QuickestMoments, WithoutOthersNothingDrifts) {
  add(0, {300, 310});
  add(1, {400, 410});
  EXPECT_EQ(keep_quickest(runs, [](int run) { return std::to_string(run); }), 0);
  EXPECT_EQ(kept(), (std::vector<int>{0, 1}));
}

TEST_F(QuickestMoments, ARunWithoutTimedStepsIsNoneOfThem) {
  add(0, {});
  add(1, {400, 410});
  add(2, {});
  EXPECT_EQ(keep_quickest(runs, [](int run) { return run < 2 ? "same" : "alone"; }), 0);
  EXPECT_EQ(kept(), (std::vector<int>{1, 2}));
}

TEST_F(QuickestMoments, DriftWidensTheBarOfAStep) {
  add(0, {300, 310});
  ClusterSpec cluster = plain_cluster(2);
  RankCoefficients entry;
  entry.ranks = 2;
  cluster.calibration = Calibration{.by_ranks = {entry}, .step_error = 0.03, .drift = 0.04};
  EXPECT_NEAR(price(*runs[0].trace, cluster).steps[0].spread, 0.05, 1e-12);
}

}  // namespace
}  // namespace zl::sim
