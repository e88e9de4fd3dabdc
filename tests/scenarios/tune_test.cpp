// What a growing learning rate suggests, and which trials end early.
#include <gtest/gtest.h>

#include <cmath>

#include "scenarios/run/learning_rate.h"
#include "scenarios/run/pruner.h"

namespace zl::test {
namespace {

// A loss that stays, falls between 1e-4 and 1e-2, stays, and grows from 1 on.
double loss_at(double lr) {
  const double x = std::log10(lr);
  if (x < -4) return 5;
  if (x < -2) return 5 - 1.5 * (x + 4);
  return x < 0 ? 2 : 2 * std::exp(4 * x);
}

LearningRateCurve curve_of(int steps, double from, double to) {
  LearningRateCurve curve;
  for (int i = 0; i < steps && !curve.has_diverged(); ++i) {
    const double lr = from * std::pow(to / from, i / (steps - 1.0));
    curve.take(lr, loss_at(lr));
  }
  return curve;
}

TEST(LearningRateCurve, SuggestsWhereTheLossFallsFastest) {
  const LearningRateCurve curve = curve_of(400, 1e-7, 10);
  const auto suggestion = curve.suggestion();
  ASSERT_TRUE(suggestion);
  // The mean over 50 steps lags behind by a factor of ten at most.
  EXPECT_GT(suggestion->steepest, 1e-3);
  EXPECT_LT(suggestion->steepest, 3e-2);
  EXPECT_GT(suggestion->below_minimum, 1e-2);
  EXPECT_LT(suggestion->below_minimum, 0.3);
}

TEST(LearningRateCurve, EndsWhereItDiverges) {
  const LearningRateCurve curve = curve_of(400, 1e-7, 1e3);
  EXPECT_TRUE(curve.has_diverged());
  EXPECT_LT(curve.rates().back(), 1e3);
  EXPECT_GT(curve.smoothed().back(), 8) << "four times the lowest, which is at least 2";
  LearningRateCurve lost;
  lost.take(1e-3, 2);
  lost.take(2e-3, std::nan(""));
  EXPECT_TRUE(lost.has_diverged());
}

// The first smoothed value is the first loss: the correction is of as many steps as were taken.
TEST(LearningRateCurve, IsCorrectedForItsBeginning) {
  LearningRateCurve curve;
  curve.take(1e-3, 3);
  curve.take(2e-3, 5);
  EXPECT_DOUBLE_EQ(curve.smoothed()[0], 3);
  EXPECT_DOUBLE_EQ(curve.smoothed()[1], (0.98 * 0.02 * 3 + 0.02 * 5) / (1 - 0.98 * 0.98));
}

TEST(LearningRateCurve, ThatOnlyRisesSuggestsNothing) {
  LearningRateCurve curve;
  for (int i = 0; i < 100; ++i) curve.take(std::exp(0.1 * i), 2 + 0.01 * i);
  EXPECT_FALSE(curve.suggestion());
}

TEST(MedianPruner, EndsTrialsAboveTheMedianOfThoseBefore) {
  MedianPruner pruner(2);
  const auto trial = [&pruner](std::vector<double> losses) {
    pruner.begin();
    for (std::size_t i = 0; i < losses.size(); ++i) {
      if (pruner.take(static_cast<std::int64_t>(i) * 10, losses[i])) return static_cast<int>(i);
    }
    return -1;
  };
  EXPECT_EQ(trial({5, 4, 3}), -1);
  EXPECT_EQ(trial({5, 4.5, 4}), -1) << "the first two run to their end";
  EXPECT_EQ(trial({5, 4.2, 3.4}), -1) << "4.25 and 3.5 are the medians";
  EXPECT_EQ(trial({5, 4.2, 3.41}), 2) << "of three: 3.4";
  EXPECT_EQ(trial({6, 4, 3}), 0);
  EXPECT_EQ(trial({5, std::nan(""), 3}), 1) << "its lowest is the first, above the median";
}

}  // namespace
}  // namespace zl::test
