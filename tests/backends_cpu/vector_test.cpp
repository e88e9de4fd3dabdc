// The vectors' conversions and functions against the scalar ones, bit by bit.
#include "backends/cpu/ops/vector.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "backends/cpu/ops/element.h"
#include "backends/cpu/ops/fast_math.h"
#include "core/base/dtype.h"

namespace zl {
namespace {

constexpr std::int64_t kLanes = cpu::kLanes<float>;

// Every upper half of a float with lower halves about what rounds up, down and to even: infinities,
// NaN of all kinds, subnormal numbers and zeros of both signs are among them.
std::vector<float> all_kinds() {
  std::vector<float> values;
  for (std::uint32_t high = 0; high < 0x10000; ++high) {
    for (const std::uint32_t low : {0x0000u, 0x0001u, 0x7fffu, 0x8000u, 0x8001u, 0xffffu}) {
      values.push_back(std::bit_cast<float>(high << 16 | low));
    }
  }
  return values;
}

TEST(Vector, RoundsToBf16AsTheScalarDoes) {
  const std::vector<float> values = all_kinds();
  ASSERT_EQ(values.size() % (2 * kLanes), 0u);
  for (std::size_t i = 0; i < values.size(); i += 2 * kLanes) {
    const auto rounded =
        cpu::to_bfloat16_bits(cpu::load_vector(&values[i]), cpu::load_vector(&values[i + kLanes]));
    for (std::size_t lane = 0; lane < 2 * kLanes; ++lane) {
      ASSERT_EQ(rounded[lane], to_bfloat16(values[i + lane]).bits) << values[i + lane];
    }
  }
}

// Numbers of one kind are rounded by an instruction of its own where the processor has one: one
// that it does not know in any lane leaves the others right.
TEST(Vector, OneOddLaneRoundsAmongPlainOnes) {
  constexpr std::uint32_t kOdd[] = {0x00000001, 0x807fffff, 0x7f800001, 0xffc12345, 0x7f7fffff};
  for (const std::uint32_t odd : kOdd) {
    for (std::size_t place = 0; place < 2 * kLanes; ++place) {
      std::array<float, 2 * kLanes> values;
      values.fill(1.00390625f);  // half way
      values[place] = std::bit_cast<float>(odd);
      const auto rounded = cpu::to_bfloat16_bits(cpu::load_vector(values.data()),
                                                 cpu::load_vector(values.data() + kLanes));
      for (std::size_t lane = 0; lane < 2 * kLanes; ++lane) {
        ASSERT_EQ(rounded[lane], to_bfloat16(values[lane]).bits) << odd << " at " << place;
      }
    }
  }
}

TEST(Vector, WidensBf16AsTheScalarDoes) {
  std::vector<bfloat16> values;
  for (std::uint32_t bits = 0; bits < 0x10000; ++bits) {
    values.push_back(std::bit_cast<bfloat16>(static_cast<std::uint16_t>(bits)));
  }
  for (std::size_t i = 0; i < values.size(); i += kLanes) {
    const cpu::Vector<float> widened = cpu::load_widened<float>(&values[i]);
    for (std::size_t lane = 0; lane < kLanes; ++lane) {
      const float expected = to_float(values[i + lane]);
      ASSERT_EQ(std::bit_cast<std::uint32_t>(float{widened[lane]}),
                std::bit_cast<std::uint32_t>(expected));
    }
  }
}

TEST(Vector, ExponentialHasTheBitsOfTheScalarOne) {
  std::vector<float> values = all_kinds();
  for (int i = 0; i < 200000; ++i) values.push_back(-90.0f + 0.0009f * static_cast<float>(i));
  ASSERT_EQ(values.size() % kLanes, 0u);
  for (std::size_t i = 0; i < values.size(); i += kLanes) {
    const cpu::Vector<float> found = cpu::fast_exp(cpu::load_vector(&values[i]));
    for (std::size_t lane = 0; lane < kLanes; ++lane) {
      const float x = values[i + lane], expected = cpu::fast_exp(x);
      if (std::isnan(x)) {
        ASSERT_TRUE(std::isnan(found[lane]));
      } else {
        ASSERT_EQ(std::bit_cast<std::uint32_t>(float{found[lane]}),
                  std::bit_cast<std::uint32_t>(expected))
            << x;
      }
    }
  }
}

// log(1 + 2^-23) is told from 0, and 1 gives 0.
TEST(Vector, LogarithmOfNormalNumbersIsWithinAnUlp) {
  std::vector<float> values;
  for (const float value : all_kinds()) {
    if (value > 0 && std::isnormal(value)) values.push_back(value);
  }
  for (std::uint32_t i = 0; i < 200000; ++i) {  // about 1, where little is left
    values.push_back(std::bit_cast<float>(0x3f800000u - 100000u + i));
  }
  values.resize(values.size() / kLanes * kLanes);
  for (std::size_t i = 0; i < values.size(); i += kLanes) {
    const cpu::Vector<float> found = cpu::fast_log(cpu::load_vector(&values[i]));
    for (std::size_t lane = 0; lane < kLanes; ++lane) {
      const double expected = std::log(static_cast<double>(values[i + lane]));
      const auto size = static_cast<float>(std::abs(expected));
      const float ulp = std::nextafter(size, std::numeric_limits<float>::infinity()) - size;
      ASSERT_LE(std::abs(found[lane] - expected), ulp) << values[i + lane];
    }
  }
}

TEST(Vector, LogarithmOfZeroIsMinusInfinityAndNaNStays) {
  std::array<float, kLanes> values;
  values.fill(0.0f);
  values[1] = std::numeric_limits<float>::quiet_NaN();
  const cpu::Vector<float> found = cpu::fast_log(cpu::load_vector(values.data()));
  EXPECT_EQ(found[0], -std::numeric_limits<float>::infinity());
  EXPECT_TRUE(std::isnan(found[1]));
}

}  // namespace
}  // namespace zl
