#include "simulator/timeline.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>

#include "core/ops/matmul.h"
#include "tests/simulator/trace_builder.h"

namespace zl::sim {
namespace {

using test::kMain;
using test::kMs;
using test::kWire;
using test::plain_cluster;
using test::TraceBuilder;

// 3 MB over a 1 GB/s link and two hops of 1 us, 3 ranks.
std::int64_t wire_ms(std::int64_t megabytes) { return megabytes * kMs + 2'000'000; }
void gather(TraceBuilder& builder, StreamId stream, std::int64_t megabytes) {
  builder.collective(stream, CollectiveKind::all_gather, megabytes * 1'000'000, 3);
}

TEST(Timeline, OneStreamIsASum) {
  TraceBuilder builder;
  for (const double ms : {1.0, 2.5, 4.0}) builder.op(kMain, ms);
  const Timeline timeline = price(builder.trace, plain_cluster());
  EXPECT_EQ(timeline.total, 7'500'000'000);
  EXPECT_EQ(timeline.events[2].start, 3'500'000'000);
  ASSERT_EQ(timeline.steps.size(), 1u);
  EXPECT_EQ(timeline.steps[0].compute, timeline.total);
  EXPECT_EQ(timeline.critical_path, (std::vector<std::int32_t>{0, 1, 2}));
}

TEST(Timeline, EmptyTrace) {
  const Timeline timeline = price(Trace{}, plain_cluster());
  EXPECT_EQ(timeline.total, 0);
  EXPECT_TRUE(timeline.steps.empty());
  EXPECT_TRUE(timeline.critical_path.empty());
}

TEST(Timeline, StreamsOverlapUnlessEventsOrderThem) {
  TraceBuilder free;
  free.op(kMain, 5);
  gather(free, kWire, 3);
  EXPECT_EQ(price(free.trace, plain_cluster(3)).total, 5 * kMs);

  TraceBuilder ordered;
  ordered.op(kMain, 5);
  ordered.record(kMain, 0);
  ordered.wait(kWire, 0);
  gather(ordered, kWire, 3);
  ordered.record(kWire, 1);
  ordered.wait(kMain, 1);
  ordered.op(kMain, 1);
  const Timeline timeline = price(ordered.trace, plain_cluster(3));
  EXPECT_EQ(timeline.total, 6 * kMs + wire_ms(3));
  EXPECT_EQ(timeline.critical_path, (std::vector<std::int32_t>{0, 3, 6}));
  EXPECT_EQ(timeline.steps[0].compute, 6 * kMs);
  EXPECT_EQ(timeline.steps[0].exposed_communication, wire_ms(3));
}

TEST(Timeline, OnlyTheUncoveredPartOfACollectiveIsExposed) {
  TraceBuilder builder;
  gather(builder, kWire, 4);
  builder.record(kWire, 0);
  builder.op(kMain, 3);
  builder.wait(kMain, 0);
  builder.scope.phase = Phase::optimizer;
  builder.op(kMain, 2);
  const Timeline timeline = price(builder.trace, plain_cluster(3));
  EXPECT_EQ(timeline.total, wire_ms(4) + 2 * kMs);
  EXPECT_EQ(timeline.steps[0].compute, 3 * kMs);
  EXPECT_EQ(timeline.steps[0].exposed_communication, wire_ms(4) - 3 * kMs);
  EXPECT_EQ(timeline.steps[0].optimizer, 2 * kMs);
  EXPECT_EQ(timeline.steps[0].host, 0);
}

TEST(Timeline, ACollectiveOnTheComputeStreamIsExposed) {
  TraceBuilder builder;
  builder.op(kMain, 1);
  gather(builder, kMain, 2);
  const Timeline timeline = price(builder.trace, plain_cluster(3));
  EXPECT_EQ(timeline.steps[0].exposed_communication, wire_ms(2));
  EXPECT_EQ(timeline.total, kMs + wire_ms(2));
}

TEST(Timeline, TheHostIssuesOneAfterTheOther) {
  ClusterSpec cluster = plain_cluster();
  cluster.device.launch_seconds = 1e-3;
  TraceBuilder builder;
  for (int i = 0; i < 5; ++i) builder.op(kMain, 0.25);
  const Timeline timeline = price(builder.trace, cluster);
  // Launch-bound: the last op starts when the fifth launch is done.
  EXPECT_EQ(timeline.total, 5 * kMs + kMs / 4);
  EXPECT_EQ(timeline.steps[0].compute, 5 * kMs / 4);
  EXPECT_EQ(timeline.steps[0].host, 4 * kMs);
}

TEST(Timeline, SynchronizeMakesTheHostWait) {
  ClusterSpec cluster = plain_cluster();
  cluster.device.launch_seconds = 1e-3;
  TraceBuilder builder;
  builder.op(kMain, 10);
  builder.op(kMain, 1);
  EXPECT_EQ(price(builder.trace, cluster).total, 12 * kMs);
  TraceBuilder blocking;
  blocking.op(kMain, 10);
  blocking.synchronize(kMain);
  blocking.op(kMain, 1);
  EXPECT_EQ(price(blocking.trace, cluster).total, 13 * kMs);
}

TEST(Timeline, ComputeOnTheHostDelaysWhatIsIssuedAfterIt) {
  TraceBuilder builder;
  builder.op(kMain, 5);
  gather(builder, kWire, 3);
  builder.op(kMain, 4);
  ClusterSpec cluster = plain_cluster(3);
  cluster.compute_is_host = true;
  const Timeline timeline = price(builder.trace, cluster);
  EXPECT_EQ(timeline.events[1].start, 5 * kMs);
  EXPECT_EQ(timeline.total, 9 * kMs);
}

TEST(Timeline, WhereStreamsWaitForEachOtherTheHostHandsOver) {
  ClusterSpec cluster = plain_cluster(3);
  cluster.compute_is_host = true;
  TraceBuilder builder;
  builder.op(kMain, 2);
  builder.record(kMain, 1);
  builder.wait(kWire, 1);
  gather(builder, kWire, 3);
  builder.record(kWire, 2);
  builder.op(kMain, 1);
  builder.wait(kMain, 2);
  builder.op(kMain, 1);
  EXPECT_EQ(price(builder.trace, cluster).total, 3 * kMs + wire_ms(3));
  RankCoefficients entry;
  entry.ranks = 3;
  entry.seconds_per_wait = 1e-4;
  cluster.calibration = Calibration{{entry}, 0, 0, 1};
  const Timeline timeline = price(builder.trace, cluster);
  EXPECT_EQ(timeline.total, 3 * kMs + wire_ms(3) + 2 * kMs / 10)
      << "before one and after the other";
}

TEST(Timeline, OverlapLossSlowsTheLaterOp) {
  ClusterSpec cluster = plain_cluster(3);
  cluster.overlap_loss = 0.5;
  TraceBuilder builder;
  gather(builder, kWire, 4);
  builder.op(kMain, 1);   // at half pace: 2 ms
  builder.op(kMain, 10);  // half pace until the collective ends
  const Timeline timeline = price(builder.trace, cluster);
  EXPECT_EQ(timeline.events[1].end, 2 * kMs);
  EXPECT_EQ(timeline.total, 11 * kMs + wire_ms(4) / 2);
}

TEST(Timeline, SharedCoresGainNothingFromOverlap) {
  ClusterSpec cluster = plain_cluster(3);
  cluster.compute_is_host = true;
  cluster.shared_cores = 2;
  TraceBuilder builder;
  gather(builder, kWire, 4);
  builder.op(kMain, 1);
  builder.op(kMain, 2);
  // Three ranks share the machine: an op takes three times as long.
  EXPECT_EQ(price(builder.trace, cluster).total, wire_ms(4) + 9 * kMs);
  cluster.shared_cores = 6;  // a core for each stream
  EXPECT_EQ(price(builder.trace, cluster).total, 9 * kMs);
}

ClusterSpec rank_alone() {
  ClusterSpec cluster = plain_cluster(1);
  cluster.compute_is_host = true;
  cluster.shared_cores = 6;
  return cluster;
}

// It has no thread that communicates, on however many cores and whatever other ranks lose.
TEST(Timeline, ARankAloneOnACpuHidesNoCommunication) {
  ClusterSpec cluster = rank_alone();
  TraceBuilder builder;
  builder.collective(kWire, CollectiveKind::all_gather, 1 << 20, 1);
  builder.op(kMain, 3);
  const auto alone = [&] { return price(builder.trace, cluster).total; };
  const std::int64_t apart = alone();
  EXPECT_GT(apart, 3 * kMs);
  cluster.overlap_loss = 0.25;
  EXPECT_EQ(alone(), apart);
  RankCoefficients entry;
  entry.ranks = 1;
  entry.ops[kOpKind<Axpy>][1] = {1e-3, 0, 0, 0, 1};
  entry.collectives[2][1] = {1e-3, 0, 0, 0, 1};
  cluster.calibration = Calibration{{entry}, 0.25, 0, 1};
  const std::int64_t calibrated = alone();
  cluster.calibration->overlap_loss = 1;
  EXPECT_EQ(alone(), calibrated);
}

TEST(Timeline, ARankAloneOnACpuComputesBesideItsCopies) {
  ClusterSpec cluster = rank_alone();
  TraceBuilder builder;
  builder.copy(StreamId::copy_in, 1 << 20);
  builder.op(kMain, 3);
  EXPECT_EQ(price(builder.trace, cluster).total, 3 * kMs);
  cluster.overlap_loss = 0.5;
  EXPECT_GT(price(builder.trace, cluster).total, 3 * kMs);
}

TEST(Timeline, WorkLosesToEachStreamWhileThatIsBusy) {
  ClusterSpec cluster = rank_alone();
  RankCoefficients entry;
  entry.ranks = 1;
  entry.ops[kOpKind<Axpy>][1] = {3e-3, 0, 0, 0, 1};
  entry.collectives[2][1] = {1e-3, 0, 0, 0, 1};
  entry.routes.fill({2e-3, 0, 0, 0, 1});
  cluster.calibration = Calibration{{entry}, 0.25, 0, 1};
  TraceBuilder builder;
  builder.collective(kWire, CollectiveKind::all_gather, 1 << 20, 1);
  builder.copy(StreamId::copy_in, 1 << 20);  // beside the gather, until 2.25 ms
  builder.op(kMain, 3);                      // nothing in the first, three quarters in 1.25 ms
  EXPECT_EQ(price(builder.trace, cluster).total, kMs * 69 / 16);
}

TEST(Timeline, StepsAddUpAndSetupIsApart) {
  TraceBuilder builder;
  builder.scope = {.phase = Phase::init};
  builder.op(kMain, 7);
  for (int step = 1; step <= 3; ++step) {
    builder.scope = {.phase = Phase::forward, .unit = 0, .step = step};
    builder.op(kMain, step);
    gather(builder, kWire, 2 * step);
  }
  const Timeline timeline = price(builder.trace, plain_cluster(3));
  ASSERT_EQ(timeline.steps.size(), 4u);
  EXPECT_EQ(timeline.steps[0].step, StepPrice::kSetup);
  EXPECT_EQ(timeline.steps[0].duration, 7 * kMs);
  std::int64_t sum = 0;
  for (const StepPrice& step : timeline.steps) {
    EXPECT_EQ(step.duration, step.compute + step.exposed_communication + step.optimizer +
                                 step.offload_stall + step.host);
    EXPECT_LE(step.low(), step.duration);
    EXPECT_GE(step.high(), step.duration);
    sum += step.duration;
  }
  EXPECT_EQ(sum, timeline.total);
}

TEST(Timeline, ErrorsOfOneClassAddAndOfTwoAreIndependent) {
  ClusterSpec cluster = plain_cluster();
  cluster.spread[static_cast<std::size_t>(CostClass::memory)] = 0.3;
  cluster.spread[static_cast<std::size_t>(CostClass::gemm)] = 0.4;
  TraceBuilder same;
  same.op(kMain, 1);
  same.op(kMain, 1);
  EXPECT_NEAR(price(same.trace, cluster).steps[0].spread, 0.3, 1e-12);
  TraceBuilder two;
  two.op(kMain, 1);
  TraceEvent& gemm = two.op(kMain, 0);
  gemm.kind = kOpKind<Gemm>;
  gemm.m = gemm.n = 1000;
  gemm.k = 500;  // 1 GFLOP
  EXPECT_NEAR(price(two.trace, cluster).steps[0].spread, std::hypot(0.3, 0.4) / 2, 1e-12);
}

// Lognormal: as likely twice as long as half as long; a spread of 2 leaves more than nothing.
TEST(Timeline, BarsAreFactorsAndEndAtTheRoofline) {
  StepPrice step{.duration = 1'000'000, .spread = 0.4};
  EXPECT_NEAR(static_cast<double>(step.low()), 1e6 * std::exp(-1.645 * 0.4), 1);
  EXPECT_NEAR(static_cast<double>(step.high()), 1e6 * std::exp(1.645 * 0.4), 1);
  step.least = 700'000;
  EXPECT_EQ(step.low(), 700'000);
  step.least = 2'000'000;
  EXPECT_EQ(step.low(), step.duration) << "a peak that is exceeded cuts nothing more";
  step.spread = 100;
  EXPECT_EQ(step.high(), std::int64_t{1} << 62);
}

// Of a device 0.5 of whose peak of 1 TFLOP/s is reached: half of the time is the least there is.
TEST(Timeline, TheLeastTimeIsThatOfThePeaks) {
  TraceBuilder builder;
  TraceEvent& gemm = builder.op(kMain, 0);
  gemm.kind = kOpKind<Gemm>;
  gemm.m = gemm.n = gemm.k = 1000;
  gemm.flops = 2e9;
  ClusterSpec cluster = plain_cluster();
  cluster.device.rates.fill({1e12, 0.5});
  const StepPrice step = price(builder.trace, cluster).steps[0];
  EXPECT_EQ(step.duration, 4 * kMs);
  EXPECT_EQ(step.least, 2 * kMs);
  cluster.shared_cores = 4;
  EXPECT_EQ(price(builder.trace, cluster).steps[0].least, 0) << "a measured peak is no law";
}

TEST(Timeline, HiddenCommunicationBringsNoDoubt) {
  ClusterSpec cluster = plain_cluster(3);
  cluster.spread.fill(0);
  cluster.spread[static_cast<std::size_t>(CostClass::collective)] = 0.5;
  TraceBuilder builder;
  gather(builder, kWire, 3);
  builder.op(kMain, 5);
  EXPECT_EQ(price(builder.trace, cluster).steps[0].spread, 0);
}

// Random programs with correct event order.
TraceBuilder random_program(unsigned seed) {
  std::mt19937 random(seed);
  TraceBuilder builder;
  std::int64_t id = 0;
  for (int i = 0; i < 200; ++i) {
    builder.scope.step = 1 + i / 50;
    builder.scope.phase = i % 50 < 40 ? Phase::forward : Phase::optimizer;
    const auto stream = static_cast<StreamId>(random() % kStreams);
    switch (random() % 5) {
      case 0:
        gather(builder, kWire, 1 + random() % 4);
        break;
      case 1:
        builder.copy(StreamId::copy_in, 1'000'000 * (random() % 3));
        break;
      case 2:
        builder.record(stream, id++);
        break;
      case 3:
        if (id > 0) builder.wait(stream, random() % id);
        break;
      default:
        builder.op(kMain, 0.1 * static_cast<double>(random() % 30));
    }
  }
  return builder;
}

// By step, what its events take alone, each as a program of its own.
std::map<int, std::int64_t> one_after_the_other(const Trace& trace, const ClusterSpec& cluster) {
  std::map<int, std::int64_t> sums;
  for (const TraceEvent& event : trace.events()) {
    Trace alone;
    const bool works = event.type == EventType::op || event.type == EventType::collective ||
                       event.type == EventType::copy;
    if (works) alone.append(event);
    sums[event.scope.step] += price(alone, cluster).total;
  }
  return sums;
}

TEST(Timeline, Properties) {
  for (unsigned seed = 0; seed < 50; ++seed) {
    const TraceBuilder builder = random_program(seed);
    for (const bool on_host : {false, true}) {
      ClusterSpec cluster = plain_cluster(3);
      cluster.compute_is_host = on_host;
      cluster.device.launch_seconds = 1e-5;
      cluster.overlap_loss = 0.25;
      const Timeline timeline = price(builder.trace, cluster);
      const std::map<int, std::int64_t> serial = one_after_the_other(builder.trace, cluster);
      // The same again.
      const Timeline again = price(builder.trace, cluster);
      ASSERT_EQ(again.total, timeline.total);
      ASSERT_EQ(again.critical_path, timeline.critical_path);
      // A faster link and a faster device are never slower.
      ClusterSpec faster = cluster;
      faster.intra.bandwidth *= 2;
      faster.overlap_loss = cluster.overlap_loss = 0;
      ASSERT_LE(price(builder.trace, faster).total, price(builder.trace, cluster).total);
      faster.device.rates.fill({2e12, 1.0});
      ASSERT_LE(price(builder.trace, faster).total, price(builder.trace, cluster).total);
      // Parts add up; no step runs longer than its work alone would take, one after the other.
      std::int64_t sum = 0;
      for (const StepPrice& step : timeline.steps) {
        ASSERT_EQ(step.duration, step.compute + step.exposed_communication + step.optimizer +
                                     step.offload_stall + step.host);
        ASSERT_LE(step.duration, serial.at(step.step));
        sum += step.duration;
      }
      ASSERT_EQ(sum, timeline.total);
      // The critical path runs forward in time.
      for (std::size_t i = 1; i < timeline.critical_path.size(); ++i) {
        const auto before = static_cast<std::size_t>(timeline.critical_path[i - 1]);
        const auto after = static_cast<std::size_t>(timeline.critical_path[i]);
        ASSERT_LT(before, after);
        ASSERT_LE(timeline.events[before].end, timeline.events[after].start);
      }
    }
  }
}

TEST(Timeline, StreamsStayInOrder) {
  for (unsigned seed = 0; seed < 20; ++seed) {
    const TraceBuilder builder = random_program(seed);
    const Timeline timeline = price(builder.trace, plain_cluster(3));
    std::array<std::int64_t, kStreams> ready{};
    std::size_t index = 0;
    for (const TraceEvent& event : builder.trace.events()) {
      const EventTime time = timeline.events[index++];
      if (event.type != EventType::op && event.type != EventType::collective) continue;
      ASSERT_GE(time.start, ready[event.stream]);
      ASSERT_GE(time.end, time.start);
      ready[event.stream] = time.end;
    }
  }
}

}  // namespace
}  // namespace zl::sim
