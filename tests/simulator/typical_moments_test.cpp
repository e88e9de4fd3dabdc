#include "simulator/typical_moments.h"

#include <gtest/gtest.h>

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
    const auto step = [&builder](int number, std::int64_t microseconds) {
      builder.scope.step = number;
      builder.measured_op(1000 * microseconds);
    };
    step(1, 70'000);  // warms up
    for (std::size_t i = 0; i < steps.size(); ++i) step(static_cast<int>(i) + 2, steps[i]);
    runs.push_back({&builder.trace, 2, run});
  }
  Watched watched() const {
    Watched all;
    for (const MeasuredTrace& each : runs) all.add(each);
    return all;
  }

  std::vector<MeasuredTrace> runs;

 private:
  std::deque<TraceBuilder> programs_;
};

TEST_F(TypicalMoments, TheOneInTheMiddleCounts) {
  add(0, {300, 310, 900});  // their medians: 310, ..
  add(1, {200, 190, 210});
  add(2, {240, 100, 260});
  EXPECT_EQ(run_that_counts(watched(), Moments::typical), 2u);
  EXPECT_NEAR(watched().seconds, (1510 + 600 + 600) * 1e-6, 1e-12);
}

TEST_F(TypicalMoments, OfTwoTheLongerCounts) {
  add(0, {310});
  add(1, {300});
  EXPECT_EQ(run_that_counts(watched(), Moments::typical), 0u);
  EXPECT_EQ(run_that_counts(watched(), Moments::quiet), 1u);
}

TEST_F(TypicalMoments, OfQuietRunsTheQuickestByItsQuickerHalf) {
  add(0, {310, 100, 320, 330, 305});  // 305, though one step took least of all
  add(1, {300, 250, 240, 900, 280});  // of the quicker half in the middle: 250
  add(2, {260, 255, 270, 250, 258});  // 255, though no step took long
  EXPECT_EQ(run_that_counts(watched(), Moments::quiet), 2u);
  for (MeasuredTrace& each : runs) each.quiet = true;
  EXPECT_EQ(run_that_counts(watched(), Moments::quiet), 1u);
  EXPECT_NEAR(typical_step(runs[1]), 250e-6, 1e-12);
}

// Steps that others disturbed cost nothing.
TEST_F(TypicalMoments, OfQuietRunsTheQuickerHalfOfTheStepsIsPriced) {
  add(0, {240, 300, 250, 900, 230, 800});
  const auto op_seconds = [&] { return samples_of(runs, {}).at(0).seconds; };
  EXPECT_NEAR(op_seconds(), (240 + 250 + 300 + 800) / 4.0 * 1e-6, 1e-12) << "the middle half";
  runs[0].quiet = true;
  EXPECT_NEAR(op_seconds(), (230 + 240 + 250) / 3.0 * 1e-6, 1e-12);
}

// As 0/1 Adam clears its errors where compression begins: no quick step, and the only one that
// does.
TEST(SamplesOf, AreOfOtherStepsWhereThoseThatCountHaveNone) {
  constexpr std::int64_t kOften = 100'000, kOnce = 700'000, kWarm = 5'000'000;
  for (const bool quiet : {false, true}) {
    TraceBuilder builder;
    std::int64_t now = 1000;
    const auto work = [&](std::int64_t bytes, std::int64_t nanoseconds) {
      TraceEvent& event = builder.op(kMain, 1);
      event.bytes_written = bytes;
      event.timing = {now, now + nanoseconds};
      now += nanoseconds;
    };
    for (int step = 1; step <= 8; ++step) {
      builder.scope.step = step;
      work(8, step == 2 ? kWarm : kOften);
      if (step == 1) work(64, kWarm);  // warms up
      if (step == 2) work(4096, kOnce);
    }
    const std::vector<Sample> samples = samples_of({{&builder.trace, 1, 0, {}, quiet}}, {});
    ASSERT_EQ(samples.size(), 2u);
    EXPECT_NEAR(samples[0].seconds, kOften * 1e-9, 1e-12) << "of the steps that count alone";
    EXPECT_NEAR(samples[1].seconds, kOnce * 1e-9, 1e-12);
    EXPECT_EQ(samples[1].count, 1);
  }
}

TEST_F(TypicalMoments, AThirdIsAskedForWhereTwoDisagree) {
  EXPECT_FALSE(is_settled({{0.2}, 60}, Moments::typical));
  EXPECT_TRUE(is_settled({{0.2, 0.209}, 0.1}, Moments::typical));
  EXPECT_FALSE(is_settled({{0.2, 0.211}, 60}, Moments::typical));
  EXPECT_TRUE(is_settled({{0.2, 0.3, 0.4}, 0.1}, Moments::typical));
  EXPECT_FALSE(is_settled({{0.2, 0.2}, 60}, Moments::all));
  EXPECT_TRUE(is_settled({{0.2, 0.2, 0.2}, 0.1}, Moments::all));
}

TEST_F(TypicalMoments, AQuietOneIsFoundTwiceInFiveSeconds) {
  EXPECT_FALSE(is_settled({{0.2}, 60}, Moments::quiet));
  EXPECT_FALSE(is_settled({{0.2, 0.209}, 4.9}, Moments::quiet));
  EXPECT_TRUE(is_settled({{0.2, 0.209}, 5}, Moments::quiet));
  EXPECT_FALSE(is_settled({{0.3, 0.2, 0.29}, 60}, Moments::quiet)) << "the slower two agree";
  EXPECT_TRUE(is_settled({{0.3, 0.2, 0.4, 0.205}, 60}, Moments::quiet));
  EXPECT_TRUE(is_settled({{0.3, 0.2, 0.4, 0.5, 0.6, 0.7}, 1}, Moments::quiet));
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
