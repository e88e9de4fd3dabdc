#include "results/compare.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "core/base/error.h"
#include "tests/results/fixtures.h"

namespace zl::test {
namespace {

RunResult base() {
  RunResult run;
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
  EXPECT_DOUBLE_EQ(parse_threshold("5%"), 0.05);
  EXPECT_DOUBLE_EQ(parse_threshold("0.05"), 0.05);
  EXPECT_DOUBLE_EQ(parse_threshold("0"), 0);
  for (const char* bad : {"", "%", "five", "5 %", "-5%", "5%%", "nan", "inf"}) {
    EXPECT_THROW(parse_threshold(bad), Error) << bad;
  }
}

}  // namespace
}  // namespace zl::test
