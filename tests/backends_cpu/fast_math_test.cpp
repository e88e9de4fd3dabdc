// Elementary functions of kernels against the standard library's.
#include "backends/cpu/ops/fast_math.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace zl::cpu {
namespace {

float log_of(float x) { return fast_log(broadcast(x))[0]; }

TEST(FastMath, LogarithmsAreThoseOfTheLibrary) {
  for (float x = 2e-38f; x < 1e38f; x *= 1.0009f) {
    const double wanted = std::log(static_cast<double>(x));
    ASSERT_NEAR(log_of(x), wanted, 2e-7 * std::max(std::abs(wanted), 0.1)) << x;
  }
  for (int i = -1000; i <= 1000; ++i) {  // where they are small
    const float x = 1 + 1e-5f * static_cast<float>(i);
    const double wanted = std::log(static_cast<double>(x));
    ASSERT_NEAR(log_of(x), wanted, 2e-7 * std::abs(wanted)) << x;
  }
  EXPECT_EQ(log_of(1), 0);
  EXPECT_EQ(log_of(0), -std::numeric_limits<float>::infinity());
  EXPECT_TRUE(std::isnan(log_of(-1)));
  EXPECT_TRUE(std::isnan(log_of(std::numeric_limits<float>::quiet_NaN())));
}

}  // namespace
}  // namespace zl::cpu
