#include "simulator/error_bar.h"

#include <gtest/gtest.h>

#include <vector>

namespace zl::sim {
namespace {

TEST(ErrorBar, NineInTenAreInsideWhateverTheirSign) {
  std::vector<double> errors;
  for (int i = 1; i <= 20; ++i) errors.push_back((i % 2 == 0 ? -0.01 : 0.01) * i);
  EXPECT_DOUBLE_EQ(kNineInTen * bar_of(errors), 0.18);
  errors.pop_back();
  EXPECT_DOUBLE_EQ(kNineInTen * bar_of(errors), 0.18) << "17 of 19 would be fewer";
}

TEST(ErrorBar, OfFewAllAreInside) {
  EXPECT_DOUBLE_EQ(kNineInTen * bar_of({-0.4}), 0.4);
  EXPECT_DOUBLE_EQ(kNineInTen * bar_of({0.1, -0.2, 0.3, 0, 0, 0, 0, 0, 0}), 0.3);
  EXPECT_DOUBLE_EQ(kNineInTen * bar_of({0.1, -0.2, 0.3, 0, 0, 0, 0, 0, 0, 0}), 0.2);
}

}  // namespace
}  // namespace zl::sim
