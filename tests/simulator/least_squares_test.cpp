#include "simulator/cost/least_squares.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace zl::sim {
namespace {

TEST(LeastSquares, RecoversExactLines) {
  const LinearCost truth{3e-6, 2e-12, 5e-11};
  std::vector<Sample> samples;
  for (int i = 1; i <= 12; ++i) {
    Sample sample;
    sample.units = 1e6 * i * i;
    sample.bytes = 4e4 * ((i * 7) % 13);
    sample.seconds = truth.seconds(sample.units, sample.bytes);
    sample.count = i;
    samples.push_back(sample);
  }
  const LinearCost fitted = fit_line(samples);
  EXPECT_NEAR(fitted.fixed, truth.fixed, 1e-6 * truth.fixed);
  EXPECT_NEAR(fitted.per_unit, truth.per_unit, 1e-6 * truth.per_unit);
  EXPECT_NEAR(fitted.per_byte, truth.per_byte, 1e-6 * truth.per_byte);
  EXPECT_LT(fitted.spread, 1e-6);
  EXPECT_EQ(fitted.samples, 78);
}

TEST(LeastSquares, NeverNegativeAndTheTotalIsKept) {
  // Falls with bytes: the best unconstrained line has a negative slope.
  const std::vector<Sample> samples = {{.bytes = 1000, .seconds = 3e-6, .count = 2},
                                       {.bytes = 2000, .seconds = 2e-6, .count = 5},
                                       {.bytes = 3000, .seconds = 1e-6, .count = 1}};
  const LinearCost line = fit_line(samples);
  EXPECT_GE(line.fixed, 0);
  EXPECT_GE(line.per_unit, 0);
  EXPECT_EQ(line.per_byte, 0);
  const double total =
      2 * line.seconds(0, 1000) + 5 * line.seconds(0, 2000) + line.seconds(0, 3000);
  EXPECT_NEAR(total, 2 * 3e-6 + 5 * 2e-6 + 1e-6, 1e-15);
}

TEST(LeastSquares, SmallWorkCountsAsMuchAsLarge) {
  // A microsecond of its own and, from a megabyte on, slower memory.
  std::vector<Sample> samples;
  for (const double bytes : {1e3, 1e4, 1e5, 1e6, 1e7, 1e8}) {
    const double slow = std::max(0.0, bytes - 1e6);
    samples.push_back({.bytes = bytes, .seconds = 1e-6 + 1e-11 * bytes + 2e-10 * slow, .count = 1});
  }
  const auto relative = [&](Weigh by, std::size_t i) {
    return fit_line(samples, by).seconds(0, samples[i].bytes) / samples[i].seconds - 1;
  };
  EXPECT_LT(std::abs(relative(Weigh::shapes, 0)), 0.5);
  EXPECT_GT(std::abs(relative(Weigh::time, 0)), 0.7);
  double sum = 0;
  for (std::size_t i = 0; i < samples.size(); ++i) sum += relative(Weigh::shapes, i);
  EXPECT_NEAR(sum, 0, 1e-9);
  EXPECT_LT(std::abs(relative(Weigh::time, 5)), 0.05) << "the largest decides";
}

// Seconds of a sample of every size under one line up to `end` bytes and another from there.
std::vector<Sample> samples_of_two(const LinearCost& small, const LinearCost& large, double end) {
  std::vector<Sample> samples;
  for (int i = 0; i < 16; ++i) {
    Sample sample{.units = 1e6 * (1 + i * i % 7), .bytes = 1e4 * (1 << i), .count = 3};
    const LinearCost& line = sample.bytes < end ? small : large;
    sample.seconds = line.seconds(sample.units, sample.bytes);
    samples.push_back(sample);
  }
  return samples;
}

TEST(LeastSquares, WhereCachesEndALineOfItsOwnBegins) {
  const LinearCost small{2e-6, 1e-12, 1e-11}, large{5e-6, 1e-12, 2e-10};
  const auto [first, second] = fit_lines(samples_of_two(small, large, 1e6));
  EXPECT_NEAR(first.per_byte, small.per_byte, 1e-6 * small.per_byte);
  EXPECT_NEAR(second.per_byte, large.per_byte, 1e-6 * large.per_byte);
  EXPECT_NEAR(second.from_bytes, 1e4 * std::sqrt((1 << 6) * (1 << 7)), 1) << "between the two";
  EXPECT_EQ(first.from_bytes, 0);
}

TEST(LeastSquares, OneLineSufficesWhereAllWorkIsAlike) {
  const LinearCost line{2e-6, 1e-12, 1e-11};
  const auto [first, second] = fit_lines(samples_of_two(line, line, 1e6));
  EXPECT_EQ(second.samples, 0);
  EXPECT_NEAR(first.per_byte, line.per_byte, 1e-6 * line.per_byte);
}

TEST(LeastSquares, TwoGroupsOfLargeWorkAreNoFixedTime) {
  // Two shapes far apart, of two kinds each, which a line with a fixed time of its own fits best.
  std::vector<Sample> samples = samples_of_two({2e-6, 1e-12, 1e-11}, {}, 1e6);
  std::erase_if(samples, [](const Sample& sample) { return sample.bytes >= 1e6; });
  for (const double more : {0.95, 1.05}) {
    samples.push_back({.units = 1e9, .bytes = 2e7, .seconds = more * 8e-3, .count = 3});
    samples.push_back({.units = 8e9, .bytes = 1.4e8, .seconds = more * 24e-3, .count = 3});
  }
  EXPECT_GT(fit_lines(samples, Weigh::shapes).second.fixed, 4e-3);
  const LinearCost large = fit_lines(samples, Weigh::shapes, 1e-4).second;
  EXPECT_LT(large.fixed, 1.3e-4);
  EXPECT_NEAR(large.seconds(4e9, 7e7), 16e-3, 4e-3);
}

TEST(LeastSquares, FactorsThatMakeOnes) {
  const std::vector<Terms> rows = {
      {0.5, 0, 0.01}, {0.1, 0.2, 0.04}, {0.3, 0.1, 0.02}, {0.25, 0.25, 0}};
  std::vector<Terms> scaled = rows;
  for (Terms& row : scaled) {
    const double sum = 1.2 * row[0] + 0.7 * row[1] + 9 * row[2];
    for (double& term : row) term /= sum;
  }
  const Terms found = fit_ones(scaled);
  EXPECT_NEAR(found[0], 1.2, 1e-6);
  EXPECT_NEAR(found[1], 0.7, 1e-6);
  EXPECT_NEAR(found[2], 9, 1e-5);
  EXPECT_EQ(fit_ones({}), Terms{});
}

// One row of six that is far off, in either direction, draws no factor with it.
TEST(LeastSquares, AnOutlierMovesNoFactor) {
  for (const double off : {0.4, 2.5}) {
    std::vector<Terms> rows;
    for (const double share : {0.05, 0.2, 0.35, 0.6, 0.8, 0.95}) {
      rows.push_back({share / 1.2, (1 - share) / 0.7, 0});
    }
    for (double& term : rows[4]) term *= off;
    const Terms found = fit_ones(rows);
    EXPECT_NEAR(found[0], 1.2, 1e-3);
    EXPECT_NEAR(found[1], 0.7, 1e-3);
  }
}

TEST(LeastSquares, OneShapeAndParallelColumns) {
  const std::vector<Sample> one = {{.units = 1e6, .bytes = 1e3, .seconds = 4e-6, .count = 3}};
  EXPECT_NEAR(fit_line(one).seconds(1e6, 1e3), 4e-6, 1e-15);
  std::vector<Sample> parallel;
  for (int i = 1; i < 6; ++i) {
    parallel.push_back(
        {.units = 10.0 * i, .bytes = 40.0 * i, .seconds = 1e-6 + 1e-6 * i, .count = 1});
  }
  EXPECT_NEAR(fit_line(parallel).seconds(100, 400), 11e-6, 1e-10);
}

}  // namespace
}  // namespace zl::sim
