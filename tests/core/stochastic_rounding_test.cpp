// Stochastic rounding to bf16: between the neighbours, without bias.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "core/base/dtype.h"
#include "core/base/rng.h"

namespace zl {
namespace {

TEST(RoundStochastically, ValuesOfBf16StayForEveryRandomWord) {
  for (const float value : {0.0f, -0.0f, 1.0f, -2.5f, 0x1p-130f, 0x1.fep127f}) {
    for (const std::uint32_t random : {0u, 1u, 0x7fffu, 0x8000u, 0xffffu, 0xffffffffu}) {
      EXPECT_EQ(round_stochastically(value, random).bits, to_bfloat16(value).bits) << value;
    }
  }
}

TEST(RoundStochastically, TheCutPartIsTheProbability) {
  // 1 + 2^-9 lies a quarter of the way from 1 to the next bf16, 1 + 2^-7.
  const float value = 1.0f + 0x1p-9f;
  for (std::uint32_t random = 0; random <= 0xffff; ++random) {
    const bool up = random >= 0xc000;
    ASSERT_EQ(to_float(round_stochastically(value, random)), up ? 1.0f + 0x1p-7f : 1.0f);
    ASSERT_EQ(to_float(round_stochastically(-value, random)), up ? -1.0f - 0x1p-7f : -1.0f);
  }
}

TEST(RoundStochastically, KeepsInfinityAndNan) {
  const float infinity = std::numeric_limits<float>::infinity();
  EXPECT_EQ(to_float(round_stochastically(infinity, 0xffff)), infinity);
  EXPECT_EQ(to_float(round_stochastically(-infinity, 0xffff)), -infinity);
  EXPECT_TRUE(std::isnan(to_float(round_stochastically(std::nanf(""), 0xffff))));
}

// The mean of n roundings of values between x and x + unit is off by less than 5 standard errors;
// rounding to nearest would be off by 0.2 units.
TEST(RoundStochastically, TheMeanIsUnbiased) {
  constexpr int kDraws = 1 << 16;
  const float unit = 0x1p-7f, value = 1.0f + 0.2f * unit;
  double sum = 0;
  for (int i = 0; i < kDraws; ++i) {
    sum += to_float(
        round_stochastically(value, random_bits({1234, 5, 6}, static_cast<std::uint64_t>(i))));
  }
  const double standard_error = unit * std::sqrt(0.2 * 0.8 / kDraws);
  EXPECT_NEAR(sum / kDraws, value, 5 * standard_error);
  EXPECT_EQ(to_float(to_bfloat16(value)), 1.0f);
}

// A thousand updates too small for bf16 move the weight by their sum, not by nothing.
TEST(RoundStochastically, SmallUpdatesAddUp) {
  constexpr int kSteps = 1000, kWeights = 64;
  const float update = 0x1p-7f / 32;
  double mean = 0;
  for (int w = 0; w < kWeights; ++w) {
    float weight = 1.0f;
    for (int step = 0; step < kSteps; ++step) {
      const RngKey key{7, static_cast<std::uint32_t>(step), 0};
      weight = to_float(
          round_stochastically(weight + update, random_bits(key, static_cast<std::uint64_t>(w))));
    }
    mean += weight / kWeights;
  }
  EXPECT_NEAR(mean - 1, kSteps * double{update}, 0.02);
}

}  // namespace
}  // namespace zl
