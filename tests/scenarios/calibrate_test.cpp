#include "scenarios/machine/calibrate.h"

#include <gtest/gtest.h>

#include "core/ops/op.h"

namespace zl {
namespace {

TEST(Calibrate, TrainsLlamasTooAndTellsTheDriftOfItsMoments) {
  const sim::ClusterSpec machine = calibrate_machine({.ranks = {1}, .steps = 2, .tiny = true});
  const auto samples_of = [&](std::size_t kind) {
    return machine.calibration->by_ranks.at(0)
        .ops[kind][static_cast<std::size_t>(DType::f32)]
        .samples;
  };
  EXPECT_GT(samples_of(kOpKind<Rope>), 0);
  EXPECT_GT(samples_of(kOpKind<NormForward>), 0);
  EXPECT_GT(machine.calibration->drift, 0);  // no two passes take the same nanoseconds
}

}  // namespace
}  // namespace zl
