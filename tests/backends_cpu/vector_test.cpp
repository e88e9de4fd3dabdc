// The vectors' rounding to bf16 against the scalar one, bit by bit.
#include "backends/cpu/ops/vector.h"

#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <vector>

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

}  // namespace
}  // namespace zl
