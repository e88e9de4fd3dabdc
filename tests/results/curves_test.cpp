// Curves over steps, and the names that tell them apart.
#include <gtest/gtest.h>

#include <cmath>

#include "results/distinct_names.h"
#include "results/svg.h"
#include "tests/results/xml_reader.h"

namespace zl::test {
namespace {

std::vector<std::string> curve_paths(const CurveChart& chart) {
  std::vector<std::string> paths;
  const Element svg = XmlReader::read(svg_curves(chart));
  for (const Element* path : svg.all("path")) {
    if (path->attribute("class").rfind("curve", 0) == 0) paths.push_back(path->attribute("d"));
  }
  return paths;
}

TEST(Curves, PointsAreAtTheirValues) {
  const auto paths = curve_paths({{"t", "d"}, {{"a", 1, {1, 3, 2}}, {"b", 2, {1}}}});
  ASSERT_EQ(paths.size(), 4u) << "two in the legend";
  // From x 80 to 930 over steps 1 to 3; from the top at 40 down to 300 over values 3 to 1.
  EXPECT_EQ(paths[2], "M80.0 300.0h0L505.0 40.0L930.0 170.0");
  EXPECT_EQ(paths[3], "M505.0 300.0h0");
}

TEST(Curves, ValuesMayHaveStepsOfTheirOwn) {
  const auto paths =
      curve_paths({{"t", "d"}, {{"a", 1, {1, 3, 2}}, {"b", 1, {3, 1, 2}, {0, 1, 4}}}});
  EXPECT_EQ(paths[2], "M292.5 300.0h0L505.0 40.0L717.5 170.0");
  EXPECT_EQ(paths[3], "M80.0 40.0h0L292.5 300.0L930.0 170.0");
}

TEST(Curves, WhatIsNotFiniteIsAGapAndWideRangesAreLogarithmic) {
  const double nan = std::nan("");
  const auto paths = curve_paths({{"t", "d"}, {{"a", 1, {1, nan, 1000, 1}}}});
  EXPECT_EQ(paths.at(1), "M80.0 300.0h0M646.7 40.0h0L930.0 300.0");
  const std::string svg = svg_curves({{"t", "d"}, {{"a", 1, {1, 10, 1000}}}});
  EXPECT_NE(svg.find("logarithmic"), std::string::npos);
  EXPECT_NE(svg.find("L505.0 213.3"), std::string::npos) << "a third of the way up";
  XmlReader::read(svg_curves({{"t", "d"}, {{"a", 1, {}}, {"b", 1, {nan}}}}));
}

TEST(Curves, ManyStepsStaySmallAndKeepTheirExtremes) {
  std::vector<double> values(100'000, 1.0);
  values[54'321] = 9;
  const std::string svg = svg_curves({{"t", "d"}, {{"a", 1, values}}});
  EXPECT_LT(svg.size(), 20'000u);
  EXPECT_NE(svg.find(" 40.0L"), std::string::npos) << "the peak is there";
}

NameWithFacts named(const std::string& name, const std::string& precision, const std::string& batch,
                    const std::string& last, const char* group = "") {
  return {
      name, {{"precision", precision, precision}, {"batch", batch, "batch " + batch}}, last, group};
}

TEST(DistinctNames, TellApartByWhatDiffers) {
  using Names = std::vector<std::string>;
  EXPECT_EQ(distinct_names({named("z", "bf16", "1", "run 1"), named("y", "fp16", "2", "run 2")}),
            (Names{"z", "y"}));
  EXPECT_EQ(distinct_names({named("z", "bf16", "1", "run 1"), named("z", "fp16", "1", "run 2"),
                            named("z", "fp16", "2", "run 3")}),
            (Names{"z (bf16, batch 1)", "z (fp16, batch 1)", "z (fp16, batch 2)"}));
  EXPECT_EQ(distinct_names({named("z", "bf16", "1", "run 1"), named("z", "fp16", "2", "run 2")}),
            (Names{"z (bf16)", "z (fp16)"}))
      << "no more than it takes";
  EXPECT_EQ(distinct_names({named("z", "bf16", "1", "run 1"), named("z", "bf16", "1", "run 2")}),
            (Names{"z, run 1", "z, run 2"}));
  EXPECT_EQ(distinct_names(
                {named("z", "bf16", "1", "run 1", "cpu"), named("z", "bf16", "1", "run 2", "sim")}),
            (Names{"z", "z"}));
}

}  // namespace
}  // namespace zl::test
