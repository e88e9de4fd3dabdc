// Rotary positions, whose angles are turned from one position to the next.
#include <gtest/gtest.h>

#include <cmath>
#include <memory>
#include <vector>

#include "backends/cpu/ops/ops.h"
#include "core/ops/attention.h"

namespace zl::cpu {
namespace {

constexpr AttentionShape kShape{.batch = 2,
                                .sequence = 300,
                                .heads = 3,
                                .kv_heads = 1,
                                .head_size = 64,
                                .first_position = 100'005};

std::vector<double> ramp() {
  std::vector<double> values(static_cast<std::size_t>(kShape.rows() * kShape.qkv_width()));
  for (std::size_t i = 0; i < values.size(); ++i) {
    values[i] = std::sin(static_cast<double>(i)) + 0.1;
  }
  return values;
}

std::vector<double> rotated(std::vector<double> values, const RopeTable& table, bool inverse,
                            int threads) {
  const TensorView qkv{reinterpret_cast<std::byte*>(values.data()), DType::f64,
                       Shape{kShape.rows(), kShape.qkv_width()}};
  execute(Rope{qkv, kShape, std::make_shared<const RopeTable>(table), inverse}, {threads});
  return values;
}

class RopeOp : public testing::TestWithParam<bool> {
 protected:
  RopeTable table() const {
    RopeTable table = rope_table(10000.0, kShape.head_size, {}, 1);
    table.multiplier = 1.25;
    return table;
  }
};

// At 100,000 radians a double itself is off by 1e-11.
TEST_P(RopeOp, TurnsEveryPairByItsAngle) {
  const std::vector<double> before = ramp(), after = rotated(before, table(), GetParam(), 1);
  const std::int64_t width = kShape.qkv_width(), half = kShape.head_size / 2;
  for (std::int64_t row = 0; row < kShape.rows(); ++row) {
    const auto position =
        static_cast<double>(kShape.first_position + row % kShape.sequence) * (GetParam() ? -1 : 1);
    for (std::int64_t head = 0; head < kShape.heads + kShape.kv_heads; ++head) {
      for (std::int64_t j = 0; j < half; ++j) {
        const double angle = position * table().frequencies[static_cast<std::size_t>(j)];
        const auto low = static_cast<std::size_t>(row * width + head * kShape.head_size + j);
        const std::size_t high = low + static_cast<std::size_t>(half);
        const double x = 1.25 * before[low], y = 1.25 * before[high];
        ASSERT_NEAR(after[low], x * std::cos(angle) - y * std::sin(angle), 1e-10) << row;
        ASSERT_NEAR(after[high], y * std::cos(angle) + x * std::sin(angle), 1e-10) << row;
      }
    }
  }
}

TEST_P(RopeOp, HasTheSameBitsWhereverThreadsBegin) {
  const std::vector<double> one = rotated(ramp(), table(), GetParam(), 1);
  for (const int threads : {2, 3, 7}) {
    EXPECT_EQ(rotated(ramp(), table(), GetParam(), threads), one) << threads;
  }
}

INSTANTIATE_TEST_SUITE_P(Both, RopeOp, testing::Bool());

}  // namespace
}  // namespace zl::cpu
