#include "simulator/shared_cores.h"

#include <gtest/gtest.h>

#include <cmath>
#include <deque>

#include "core/ops/elementwise.h"
#include "core/ops/matmul.h"
#include "simulator/calibration.h"
#include "tests/simulator/trace_builder.h"

namespace zl::sim {
namespace {

using test::kMain;
using test::kWire;
using test::plain_cluster;
using test::TraceBuilder;

constexpr double kMicro = 1000;  // nanoseconds

// Two cores whose ops take a microsecond for each megaflop of one rank. A step is large ops, a
// small one of another kind and meetings of a microsecond; where ranks outnumber the cores, this
// rank's ops have a core until the small one loses it for as long as the others compute.
class TwoCores {
 public:
  ClusterSpec machine = plain_cluster();
  TwoCores() {
    machine.compute_is_host = true;
    machine.shared_cores = 2;
  }

  // waiting: microseconds, for the others at each meeting. waits: of a stream for the other.
  MeasuredTrace run(int ranks, int large, int meetings, double waiting = 0, int waits = 0) {
    TraceBuilder& builder = programs_.emplace_back();
    double now = 1e6;
    std::int64_t recorded = 0;
    const auto take = [&now](TraceEvent& event, double length) {
      event.timing.start_ns = std::llround(now);
      now += length;
      event.timing.end_ns = std::llround(now);
    };
    for (int step = 1; step <= 5; ++step) {
      builder.scope.step = step;
      for (int i = 0; i < large; ++i) {
        TraceEvent& gemm = builder.op(kMain, 0.1);
        gemm.kind = kOpKind<Gemm>;
        take(gemm, 100 * kMicro);
      }
      const double others = ranks > 2 ? (ranks / 2.0 - 1) * (100 * large + 1) * kMicro : 0;
      take(builder.op(kMain, 0.001), kMicro + others);
      for (int i = 0; i < waits; ++i) {
        builder.record(kMain, ++recorded);
        builder.wait(kWire, recorded);
        now += kHandOver * kMicro;
      }
      for (int i = 0; i < meetings; ++i) {
        TraceEvent& meeting = builder.collective(kMain, CollectiveKind::all_reduce, 8, ranks);
        const double shared = ranks > 2 ? ranks / 2.0 + kWakeUp : 1;
        take(meeting, (shared + waiting) * kMicro);
        meeting.timing.met_ns = meeting.timing.start_ns + std::llround(waiting * kMicro);
      }
    }
    return {&builder.trace, ranks, static_cast<int>(programs_.size())};
  }

  static constexpr double kWakeUp = 20;   // microseconds of a meeting where ranks sleep
  static constexpr double kHandOver = 7;  // microseconds from one thread of a rank to the other

 private:
  std::deque<TraceBuilder> programs_;  // MeasuredTrace refers to them
};

TEST(SharedCores, AnOpThatLosesItsCoreIsNoDearer) {
  TwoCores cores;
  ClusterSpec calibrated = cores.machine;
  calibrated.calibration = fit({cores.run(2, 3, 4), cores.run(2, 40, 8), cores.run(4, 3, 4),
                                cores.run(4, 40, 8), cores.run(4, 9, 40)},
                               cores.machine);
  const RankCoefficients& four = calibrated.calibration->nearest(4);
  EXPECT_NEAR(four.ops[kOpKind<Axpy>][1].seconds(1e6, 0), 2e-6, 0.1e-6);
  EXPECT_NEAR(four.ops[kOpKind<Gemm>][1].seconds(1e8, 0), 200e-6, 10e-6);
  const LinearCost& meeting = four.collectives[0][1];
  EXPECT_NEAR(meeting.seconds(1, 16), (2 + TwoCores::kWakeUp) * 1e-6, 1e-6) << "until all run";
  EXPECT_LT(std::abs(step_error(cores.run(4, 1, 20), calibrated)), 0.03);
  EXPECT_LT(calibrated.calibration->step_error, 0.03) << "of runs left out, too";
}

TEST(SharedCores, WhatARankWaitsForIsNoPriceOfItsCollectives) {
  TwoCores cores;
  // One model's ranks wait for each other.
  ClusterSpec calibrated = cores.machine;
  calibrated.calibration = fit({cores.run(2, 40, 8, 15), cores.run(2, 4, 8)}, cores.machine);
  EXPECT_LT(std::abs(step_error(cores.run(2, 1, 20), calibrated)), 0.15);
  EXPECT_LT(std::abs(step_error(cores.run(2, 40, 8, 15), calibrated)), 0.15);
}

TEST(SharedCores, AWaitHasAPriceBesideThatOfAMeeting) {
  TwoCores cores;
  ClusterSpec calibrated = cores.machine;
  calibrated.calibration = fit({cores.run(2, 3, 4), cores.run(2, 40, 8), cores.run(4, 3, 4, 0, 2),
                                cores.run(4, 40, 8, 0, 30), cores.run(4, 9, 40, 0, 20)},
                               cores.machine);
  const RankCoefficients& four = calibrated.calibration->nearest(4);
  EXPECT_NEAR(four.seconds_per_wait, TwoCores::kHandOver * 1e-6, 0.5e-6);
  EXPECT_NEAR(four.collectives[0][1].seconds(1, 16), (2 + TwoCores::kWakeUp) * 1e-6, 1e-6);
  EXPECT_LT(std::abs(step_error(cores.run(4, 1, 10, 0, 50), calibrated)), 0.03);
  EXPECT_EQ(calibrated.calibration->nearest(2).seconds_per_wait, 0);
}

TEST(SharedCores, WithoutRunsTheCoresAreSharedOutEqually) {
  RankCoefficients two;
  two.ranks = 2;
  two.ops[0][1] = {1e-6, 2e-12, 3e-10, 0.1, 7};
  two.collectives[0][1] = {5e-6, 0, 0, 0.1, 7};
  two.seconds_per_event = 1e-6;
  two.seconds_per_wait = 4e-6;
  const RankCoefficients six = share_cores(two, 6, {}, TwoCores().machine);
  EXPECT_EQ(six.ranks, 6);
  EXPECT_DOUBLE_EQ(six.ops[0][1].fixed, 3e-6);
  EXPECT_DOUBLE_EQ(six.ops[0][1].per_byte, 9e-10);
  EXPECT_DOUBLE_EQ(six.collectives[0][1].fixed, 15e-6);
  EXPECT_DOUBLE_EQ(six.seconds_per_event, 3e-6);
  EXPECT_DOUBLE_EQ(six.seconds_per_wait, 12e-6);
  EXPECT_EQ(six.ops[0][1].samples, 7);
}

}  // namespace
}  // namespace zl::sim
