#include "simulator/typical_moments.h"

#include <gtest/gtest.h>

#include <cmath>
#include <deque>
#include <limits>

#include "tests/simulator/trace_builder.h"

namespace zl::sim {
namespace {

using test::kMain;
using test::TraceBuilder;

class TypicalMoments : public testing::Test {
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
  // Of the runs that are left, in microseconds.
  std::vector<std::vector<double>> moments() const {
    std::vector<std::vector<double>> all;
    for (const MeasuredTrace& each : runs) {
      std::vector<double>& steps = all.emplace_back();
      for (const double step : each.moments) steps.push_back(std::round(1e6 * step));
    }
    return all;
  }

  std::vector<MeasuredTrace> runs;

 private:
  std::deque<TraceBuilder> programs_;
};

TEST_F(TypicalMoments, TheOneInTheMiddleIsKept) {
  add(0, {300, 310, 900});  // their medians: 310, ..
  add(1, {50});
  add(2, {200, 190, 210});
  add(3, {40});
  add(4, {240, 100, 260});
  add(5, {80});
  add(6, {7});  // has no other moment
  keep_typical(runs, [](int run) { return run == 6 ? "alone" : run % 2 == 0 ? "even" : "odd"; });
  EXPECT_EQ(kept(), (std::vector<int>{1, 4, 6}));
  EXPECT_EQ(moments(), (std::vector<std::vector<double>>{{40, 50, 80}, {200, 240, 310}, {7}}));
}

TEST_F(TypicalMoments, OfTwoTheLongerIsKept) {
  add(0, {310});
  add(1, {300});
  keep_typical(runs, [](int) { return "same"; });
  EXPECT_EQ(kept(), (std::vector<int>{0}));
  EXPECT_EQ(moments(), (std::vector<std::vector<double>>{{300, 310}}));
}

TEST_F(TypicalMoments, TheQuietestIsTheQuickestByItsQuickerHalf) {
  add(0, {300, 250, 240, 900, 280});  // of the quicker half in the middle: 250
  add(1, {310, 100, 320, 330, 305});  // 305, though one step took least of all
  add(2, {260, 255, 270, 250, 258});  // 255, though no step took long
  add(3, {90});
  keep_quietest(runs, [](int run) { return run == 3 ? "alone" : "same"; });
  EXPECT_EQ(kept(), (std::vector<int>{0, 3}));
  EXPECT_EQ(moments(), (std::vector<std::vector<double>>{{250, 255, 305}, {90}}));
  EXPECT_TRUE(runs[0].quiet);
  EXPECT_NEAR(typical_step(runs[0]), 250e-6, 1e-12);
}

// Steps that others disturbed cost nothing: neither their ops nor their gaps count.
TEST_F(TypicalMoments, OfQuietRunsTheQuickerHalfOfTheStepsIsPriced) {
  add(0, {240, 300, 250, 900, 230, 800});
  const auto op_seconds = [&] { return samples_of(runs, {}).at(0).seconds; };
  EXPECT_NEAR(op_seconds(), (240 + 250 + 300 + 800) / 4.0 * 1e-6, 1e-12) << "the middle half";
  keep_quietest(runs, [](int) { return "same"; });
  EXPECT_NEAR(op_seconds(), (230 + 240 + 250) / 3.0 * 1e-6, 1e-12);
}

TEST_F(TypicalMoments, ARunWithoutTimedStepsIsNoneOfThem) {
  add(0, {});
  add(1, {400, 410});
  add(2, {});
  add(3, {});
  keep_typical(runs, [](int run) { return run < 3 ? "same" : "alone"; });
  EXPECT_EQ(kept(), (std::vector<int>{1, 3}));
  EXPECT_EQ(moments(), (std::vector<std::vector<double>>{{405}, {}}));
}

TEST_F(TypicalMoments, AgreeWithinFivePercentOfTheShorter) {
  EXPECT_TRUE(agree(0.2, 0.209));
  EXPECT_TRUE(agree(0.209, 0.2));
  EXPECT_FALSE(agree(0.2, 0.211));
  EXPECT_FALSE(agree(0.211, 0.2));
}

TEST_F(TypicalMoments, TheTypicalStepIsTheMedian) {
  add(0, {300, 310, 900});
  add(1, {});
  EXPECT_NEAR(typical_step(runs[0]), 310e-6, 1e-12);
  EXPECT_EQ(typical_step(runs[1]), std::numeric_limits<double>::infinity());
}

}  // namespace
}  // namespace zl::sim
