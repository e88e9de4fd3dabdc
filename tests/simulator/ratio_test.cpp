// The error bar of the ratio of two step times.
#include "simulator/ratio.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "simulator/error_bar.h"

namespace zl::sim {
namespace {

RunResult predicted(double seconds, double whole, double own) {
  RunResult run;
  run.predicted = true;
  run.priced_from = "data sheet";
  run.ranks = 8;
  run.setup.cluster = "8xh100";
  run.step_time.median = seconds;
  run.step_time_low = seconds * std::exp(-kNineInTen * whole);
  run.step_time_high = seconds * std::exp(kNineInTen * whole);
  run.own_step_error = own;
  return run;
}

// By hand: ln of the bounds is ln(2) +- 1.645 * sqrt(0.03^2 + 0.04^2).
TEST(StepRatio, KeepsWhatIsEachOnesOwn) {
  const RunResult a = predicted(1, 0.43, 0.03), b = predicted(2, 0.43, 0.04);
  const StepRatio ratio = step_ratio(a, b).value();
  EXPECT_EQ(ratio.value, 2);
  EXPECT_NEAR(ratio.low, 2 * std::exp(-1.645 * 0.05), 1e-12);
  EXPECT_NEAR(ratio.high, 2 * std::exp(1.645 * 0.05), 1e-12);
  EXPECT_TRUE(ratio.is_decided()) << "although each bar holds the other's time";
  EXPECT_LT(b.step_time_low, a.step_time_high);
  EXPECT_FALSE(step_ratio(a, predicted(1.05, 0.43, 0.04))->is_decided());
}

TEST(StepRatio, OfOneDataSheetCancelsWhetherRunsSupportItOrNot) {
  const RunResult a = predicted(1, 0.3, 0.03);
  RunResult b = predicted(1, 0.4, 0.04);
  b.priced_from = "no published run";
  EXPECT_NEAR(step_ratio(a, b)->high, std::exp(1.645 * 0.05), 1e-12);
}

TEST(StepRatio, OfOtherMachinesSoftwareAndRanksNothingCancels) {
  const RunResult a = predicted(1, 0.3, 0.03);
  const double whole = std::exp(1.645 * std::hypot(0.3, 0.4));
  const auto high = [&](const auto& change) {
    RunResult b = predicted(1, 0.4, 0.04);
    change(b);
    return step_ratio(a, b)->high;
  };
  EXPECT_NEAR(high([](RunResult& b) { b.setup.cluster = "8xa100-80"; }), whole, 1e-12);
  EXPECT_NEAR(high([](RunResult& b) { b.setup.software = "torch-fsdp2"; }), whole, 1e-12);
  EXPECT_NEAR(high([](RunResult& b) { b.ranks = 16; }), whole, 1e-12);
  EXPECT_NEAR(high([](RunResult& b) { b.priced_from = "calibration"; }), whole, 1e-12);
  EXPECT_NEAR(high([](RunResult& b) { b.own_step_error = 0; }), whole, 1e-12);
}

TEST(StepRatio, APredictionBesideAMeasurementKeepsItsBar) {
  RunResult measured;
  measured.step_time.median = 1;
  const StepRatio ratio = step_ratio(measured, predicted(1, 0.2, 0.03)).value();
  EXPECT_NEAR(ratio.high, std::exp(1.645 * 0.2), 1e-12);
  EXPECT_FALSE(step_ratio(measured, measured).has_value());
  EXPECT_FALSE(step_ratio(measured, RunResult{}).has_value());
}

TEST(StepRatio, AsText) {
  const RunResult a = predicted(1, 0.43, 0.03), b = predicted(1.05, 0.43, 0.04);
  EXPECT_EQ(step_ratio_line(a, b),
            "A step of b takes 1.05x, 0.97 to 1.14, not decided (9 times out of 10; errors that "
            "both share cancel)");
  RunResult other = b;
  other.setup.software = "torch-fsdp2";
  EXPECT_NE(step_ratio_line(a, other).find("their errors do not cancel"), std::string::npos);
  EXPECT_EQ(step_ratio_line(a, RunResult{}), "");
}

TEST(FastestLike, IsOfPredictionsThatDifferInTheStrategyAlone) {
  const RunResult slow = predicted(2, 0.4, 0.03), fast = predicted(1, 0.4, 0.03);
  RunResult faster_software = predicted(0.5, 0.4, 0.03), too_large = predicted(0.1, 0.4, 0.03);
  faster_software.setup.software = "torch-fsdp2";
  too_large.outcome = Outcome::out_of_memory;
  RunResult measured = predicted(0.2, 0.4, 0.03);
  measured.predicted = false;
  const std::vector<const RunResult*> runs{&slow, &fast, &faster_software, &too_large, &measured};
  EXPECT_EQ(fastest_like(slow, runs), &fast);
  EXPECT_EQ(fastest_like(fast, runs), &fast);
  EXPECT_EQ(fastest_like(faster_software, runs), nullptr) << "there is nothing like it";
  EXPECT_EQ(fastest_like(too_large, runs), nullptr);
  EXPECT_EQ(fastest_like(measured, runs), nullptr);
}

}  // namespace
}  // namespace zl::sim
