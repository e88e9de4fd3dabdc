#include "results/compare.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <utility>

#include "core/base/error.h"
#include "results/configuration.h"
#include "results/ratio_interval.h"
#include "tests/results/fixtures.h"
#include "tests/seed.h"

namespace zl::test {
namespace {

RunResult base() {
  RunResult run;
  run.predicted = true;  // its times do not scatter
  run.tokens_per_second = 1000;
  run.step_time.median = 0.5;
  run.loss = {5, 4};
  run.peak_device.tag[0] = 600;
  run.peak_device.tag[1] = 400;
  run.wire_bytes_per_step = 200;
  return run;
}

const MetricDelta* find(const std::vector<MetricDelta>& deltas, const std::string& name) {
  const auto at = std::find_if(deltas.begin(), deltas.end(),
                               [&](const MetricDelta& delta) { return delta.name == name; });
  return at == deltas.end() ? nullptr : &*at;
}

TEST(Compare, DeltasAreSortedByRelativeSize) {
  RunResult b = base();
  b.tokens_per_second = 900;   // -10 %
  b.step_time.median = 0.625;  // +25 %
  b.peak_device.tag[1] = 600;  // total +20 %, the tag +50 %
  b.loss.back() = 4.2;         // +5 %
  const auto deltas = compare(base(), b);
  std::vector<std::string> names;
  for (const auto& delta : deltas) names.push_back(delta.name);
  EXPECT_EQ(names,
            (std::vector<std::string>{"peak_device_bytes.gradient", "step_time_seconds",
                                      "peak_device_bytes", "tokens_per_second", "final_loss",
                                      "peak_device_bytes.parameter", "wire_bytes_per_step"}));
  const auto* step = find(deltas, "step_time_seconds");
  EXPECT_DOUBLE_EQ(step->a, 0.5);
  EXPECT_DOUBLE_EQ(step->b, 0.625);
  EXPECT_DOUBLE_EQ(step->absolute, 0.125);
  EXPECT_DOUBLE_EQ(step->relative, 0.25);
  EXPECT_DOUBLE_EQ(find(deltas, "tokens_per_second")->relative, -0.1);
}

TEST(Compare, RegressionsKnowWhichWayIsWorse) {
  RunResult slower = base();
  slower.tokens_per_second = 900;
  slower.step_time.median = 0.52;
  const auto worse = regressions(compare(base(), slower), 0.05);
  ASSERT_EQ(worse.size(), 1u);
  EXPECT_EQ(worse[0].name, "tokens_per_second");
  EXPECT_EQ(regressions(compare(base(), slower), 0.03).size(), 2u);
  EXPECT_TRUE(regressions(compare(slower, base()), 0.0).empty());
  EXPECT_TRUE(regressions(compare(base(), base()), 0.0).empty());
}

TEST(Compare, PartsOfAMetricNeverFailAlone) {
  RunResult shifted = base();
  shifted.peak_device.tag[0] = 400;
  shifted.peak_device.tag[1] = 600;
  RunResult a = base();
  a.time.exposed_communication = 1e-6;
  shifted.time.exposed_communication = 1e-3;
  EXPECT_TRUE(regressions(compare(a, shifted), 0.05).empty());
}

TEST(Compare, FromZeroAndLostNumbersAreInfinite) {
  RunResult a = base(), b = base();
  a.wire_bytes_per_step = 0;
  b.loss.back() = std::numeric_limits<double>::quiet_NaN();
  const auto worse = regressions(compare(a, b), 1e6);
  ASSERT_EQ(worse.size(), 2u);
  EXPECT_EQ(worse[0].name, "final_loss");
  EXPECT_EQ(worse[1].name, "wire_bytes_per_step");
  EXPECT_TRUE(regressions(compare(b, a), 0).empty());
}

TEST(Compare, UnmeasuredRatesAreLeftOutAndFailureIsARegression) {
  RunResult b = base();
  b.outcome = Outcome::out_of_memory;
  b.tokens_per_second = 0;
  b.step_time.median = 0;
  const auto deltas = compare(base(), b);
  EXPECT_EQ(find(deltas, "tokens_per_second"), nullptr);
  EXPECT_EQ(find(deltas, "step_time_seconds"), nullptr);
  const auto worse = regressions(deltas, 0.05);
  ASSERT_EQ(worse.size(), 1u);
  EXPECT_EQ(worse[0].name, "failed");
  EXPECT_TRUE(regressions(compare(b, base()), 0).empty());
}

TEST(Compare, ARunThatNeverBeganHasNoNumbersToCompare) {
  RunResult a = base(), b;
  b.outcome = Outcome::out_of_memory;
  for (const bool swapped : {false, true}) {
    const auto deltas = swapped ? compare(b, a) : compare(a, b);
    EXPECT_EQ(deltas.front().name, "failed");
    const auto* peak = find(deltas, "peak_device_bytes");
    ASSERT_NE(peak, nullptr);
    EXPECT_TRUE(std::isnan(swapped ? peak->a : peak->b));
    EXPECT_EQ(swapped ? peak->b : peak->a, 1000);
    EXPECT_TRUE(std::isnan(peak->absolute));
    EXPECT_TRUE(std::isnan(peak->relative));
    EXPECT_EQ(regressions(deltas, 0).size(), swapped ? 0u : 1u);
  }
  EXPECT_TRUE(compare(b, b).empty());
}

TEST(Compare, Threshold) {
  EXPECT_DOUBLE_EQ(parse_threshold("5"), 0.05);
  EXPECT_DOUBLE_EQ(parse_threshold("5%"), 0.05);
  EXPECT_DOUBLE_EQ(parse_threshold("0.5%"), 0.005);
  EXPECT_DOUBLE_EQ(parse_threshold("250"), 2.5);
  EXPECT_DOUBLE_EQ(parse_threshold("0"), 0);
  for (const char* bad : {"", "%", "five", "5 %", "-5%", "5%%", "nan", "inf", "0.05"}) {
    EXPECT_THROW(parse_threshold(bad), Error) << bad;
  }
}

RunResult measured(std::vector<double> steps) {
  RunResult run = base();
  run.predicted = false;
  run.step_seconds = std::move(steps);
  run.step_seconds.insert(run.step_seconds.begin(), 100);  // the first warms up
  std::vector<double> sorted(run.step_seconds.begin() + 1, run.step_seconds.end());
  std::sort(sorted.begin(), sorted.end());
  run.step_time.median = sorted[sorted.size() / 2];
  run.tokens_per_second = 1000 / run.step_time.median;
  return run;
}

// Four and four times: the interval of 95 % is from the least to the largest ratio. In reciprocals
// that of the rate.
TEST(Compare, MeasuredTimesAreJudgedByTheirInterval) {
  const RunResult a = measured({1.0, 1.1, 1.2, 1.3}), b = measured({1.4, 1.5, 1.6, 1.7});
  const auto deltas = compare(a, b);
  const auto* step = find(deltas, "step_time_seconds");
  EXPECT_TRUE(step->scatters);
  EXPECT_DOUBLE_EQ(step->low, 1.4 / 1.3 - 1);
  EXPECT_DOUBLE_EQ(step->high, 0.7);
  const auto* rate = find(deltas, "tokens_per_second");
  EXPECT_NEAR(rate->low, 1 / 1.7 - 1, 1e-15);
  EXPECT_NEAR(rate->high, 1.3 / 1.4 - 1, 1e-15);
  EXPECT_EQ(regressions(deltas, 0.05).size(), 2u);
  EXPECT_EQ(regressions(deltas, 0.075).size(), 1u);  // 7.7 % for the time, 7.1 % for the rate
  EXPECT_TRUE(regressions(deltas, 0.08).empty());    // although both changed by a third
  EXPECT_TRUE(regressions(compare(b, a), 0).empty());
  EXPECT_TRUE(find(compare(b, a), "step_time_seconds")->is_better(0.05));
}

TEST(Compare, WhatOverlapsIsNoise) {
  const RunResult a = measured({1.0, 1.2, 1.4, 1.6}), b = measured({1.1, 1.3, 1.5, 1.9});
  const auto deltas = compare(a, b);
  EXPECT_GT(find(deltas, "step_time_seconds")->relative, 0.05);
  EXPECT_TRUE(find(deltas, "step_time_seconds")->is_noise());
  EXPECT_TRUE(regressions(deltas, 0).empty());
}

TEST(Compare, TooFewStepsAreNoRegression) {
  const auto deltas = compare(measured({1, 1, 1}), measured({9, 9, 9}));
  EXPECT_TRUE(find(deltas, "step_time_seconds")->scatters);
  EXPECT_TRUE(std::isnan(find(deltas, "step_time_seconds")->low));
  EXPECT_TRUE(regressions(deltas, 0.05).empty());
}

// Repeats that drift: from four a side on their medians are what scatters, not their steps.
TEST(Compare, RepeatsTellDriftFromChange) {
  std::vector<RunResult> a, b;
  for (const double at : {1.0, 1.3, 1.1, 1.5}) a.push_back(measured({at, at, at, at, at}));
  for (const double at : {1.2, 1.05, 1.4, 1.45}) b.push_back(measured({at, at, at, at, at}));
  EXPECT_EQ(representative(a).step_time.median, 1.1);
  EXPECT_TRUE(find(compare(a, b), "step_time_seconds")->is_noise());
  EXPECT_EQ(regressions(compare(a[0], b[0]), 0.05).size(), 2u);
}

// The critical values of the rank sum test, two-sided at 5 %: tables have 13 for 8 and 8 times, 23
// for 10 and 10.
TEST(RatioInterval, LeavesOutWhatTheTablesSay) {
  for (const auto& [n, out] : {std::pair{5, 2}, {8, 13}, {10, 23}, {20, 127}}) {
    std::vector<double> a(n, 1.0), b, ratios;
    for (int i = 0; i < n; ++i) b.push_back(2 + i);
    for (int i = 0; i < n; ++i) a[i] = 1 + i / 100.0;
    for (const double x : a) {
      for (const double y : b) ratios.push_back(y / x);
    }
    std::sort(ratios.begin(), ratios.end());
    const auto interval = ratio_interval(a, b);
    ASSERT_TRUE(interval);
    EXPECT_EQ(interval->first, ratios[out]);
    EXPECT_EQ(interval->second, ratios[ratios.size() - 1 - out]);
  }
  EXPECT_FALSE(ratio_interval(std::vector<double>{1, 2, 3}, std::vector<double>{1, 2, 3}));
  EXPECT_FALSE(ratio_interval({}, {}));
}

// Of two sets of one distribution 19 intervals of 20 hold 1: here of 2,000 pairs of 6 and 60 times.
TEST(RatioInterval, HoldsTheTruthAsOftenAsItSays) {
  std::mt19937_64 random(test_seed());
  std::lognormal_distribution<double> times(0, 0.3);
  for (const int n : {6, 60}) {
    int held = 0;
    for (int i = 0; i < 2000; ++i) {
      std::vector<double> a(n), b(n);
      for (double& x : a) x = times(random);
      for (double& x : b) x = 3 * times(random);
      const auto [low, high] = ratio_interval(a, b).value();
      held += low <= 3 && 3 <= high;
    }
    EXPECT_GT(held, 1850) << n;  // 1,900 and more, less five deviations
  }
}

TEST(Configuration, DifferencesAreByKeyWithoutNames) {
  const auto differences = configuration_differences(
      R"({"name":"x","model":{"name":"m","layers":2},"run":{"seed":1,"steps":3},
          "strategies":[{"x-zerolab":{"name":"p","recompute":"none"},"bf16":{"enabled":true}}]})",
      R"({"name":"y","model":{"name":"m","layers":2},"run":{"seed":2,"steps":3,"software":"s"},
          "strategies":[{"x-zerolab":{"name":"q","recompute":"full"},"bf16":{"enabled":true}}]})");
  ASSERT_EQ(differences.size(), 3u);
  EXPECT_EQ(differences[0].key, "run.seed");
  EXPECT_EQ(differences[0].a, "1");
  EXPECT_EQ(differences[0].b, "2");
  EXPECT_EQ(differences[1].key, "run.software");
  EXPECT_EQ(differences[1].a, "-");
  EXPECT_EQ(differences[2].key, "strategy.x-zerolab.recompute");
  const auto models = configuration_differences(R"({"model":{"name":"a","layers":2}})",
                                                R"({"model":{"name":"b","layers":3}})");
  ASSERT_EQ(models.size(), 1u);
  EXPECT_EQ(models[0].key, "model.name");
  EXPECT_THROW(configuration_differences("[]", "{}"), Error);
}

}  // namespace
}  // namespace zl::test
