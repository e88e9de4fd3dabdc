#include "scenarios/machine/calibrate.h"

#include <gtest/gtest.h>

#include <map>
#include <string>

#include "core/ops/op.h"

namespace zl {
namespace {

TEST(Calibrate, TrainsLlamasToo) {
  const sim::ClusterSpec machine = calibrate_machine({.ranks = {1}, .steps = 2, .tiny = true});
  const auto samples_of = [&](std::size_t kind) {
    return machine.calibration->by_ranks.at(0)
        .ops[kind][static_cast<std::size_t>(DType::f32)]
        .samples;
  };
  EXPECT_GT(samples_of(kOpKind<Rope>), 0);
  EXPECT_GT(samples_of(kOpKind<NormForward>), 0);
}

TEST(Calibrate, RunsAtTwoMomentsAndAThirdWhereTheyDisagree) {
  std::map<std::string, int> runs;
  int before = 0, all = 0;
  calibrate_machine({.ranks = {1},
                     .steps = 2,
                     .tiny = true,
                     .progress = [&](const std::string& what, int done, int total) {
                       EXPECT_EQ(done, before++);
                       EXPECT_GE(total, all);
                       EXPECT_LT(done, total);
                       all = total;
                       ++runs[what];
                     }});
  EXPECT_EQ(before, all);
  ASSERT_EQ(runs.size(), 3u * 6);
  for (const auto& [what, count] : runs) {
    const bool once = !what.ends_with("zero-0") && !what.ends_with("zero-1") &&
                      !what.ends_with("zero-2") && !what.ends_with("zero-3");
    EXPECT_GE(count, once ? 1 : 2) << what;
    EXPECT_LE(count, once ? 1 : 3) << what;
  }
}

}  // namespace
}  // namespace zl
