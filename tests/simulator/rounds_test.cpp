// Rounds that a trace holds once are priced as if it held them all.
#include <gtest/gtest.h>

#include "tests/simulator/trace_builder.h"

namespace zl::sim {
namespace {

using test::kMain;
using test::kMillisecond;
using test::kWire;
using test::plain_cluster;
using test::TraceBuilder;

constexpr StreamId kCopies = StreamId::copy_in;

struct Shape {
  double compute = 2;          // milliseconds
  std::int64_t megabytes = 1;  // gathered beside it: as many milliseconds, and 2 us
  bool compute_waits = true;   // for the gather before
  double copies = 0;           // milliseconds of a stream of its own
};

// A step of `rounds` rounds and an update; those after the third held once where `folded`.
Trace step_of(const Shape& shape, int rounds, bool folded) {
  TraceBuilder builder;
  std::int64_t id = 0;
  builder.op(kMain, 1);
  const auto round = [&] {
    builder.trace.begin_round();
    builder.collective(kWire, CollectiveKind::all_gather, shape.megabytes * 1'000'000, 3);
    builder.record(kWire, id);
    if (shape.compute_waits && id > 0) builder.wait(kMain, id - 1);
    ++id;
    builder.op(kMain, shape.compute);
    if (shape.copies > 0) builder.op(kCopies, shape.copies);
    builder.op(kMain, shape.compute / 2);
  };
  const int held = folded ? std::min(rounds, 4) : rounds - 1;
  for (int i = 0; i < held; ++i) round();
  if (held < rounds - 1) builder.trace.repeat_round(rounds - 1 - held);
  round();
  builder.trace.end_round();
  builder.wait(kMain, id - 1);
  builder.scope.phase = Phase::optimizer;
  builder.op(kMain, 3);
  return std::move(builder.trace);
}

void expect_same_step(const ClusterSpec& cluster, const Shape& shape, const std::string& what) {
  constexpr int kRounds = 40;
  const Trace all = step_of(shape, kRounds, false), folded = step_of(shape, kRounds, true);
  ASSERT_LT(folded.events().size(), all.events().size() / 4) << what;
  EXPECT_EQ(all.op_count(), folded.op_count()) << what;
  EXPECT_EQ(all.sequence_hash(), folded.sequence_hash()) << what;
  const Timeline one = price(all, cluster), two = price(folded, cluster);
  EXPECT_EQ(one.total, two.total) << what;
  ASSERT_EQ(one.steps.size(), two.steps.size());
  test::expect_same_price(one.steps.front(), two.steps.front(), what);
  EXPECT_GT(two.steps.front().spread, 0) << what;
}

TEST(RepeatedRounds, ArePricedLikeRoundsInFull) {
  ClusterSpec cluster = plain_cluster(3);
  cluster.spread.fill(0.1);
  expect_same_step(cluster, {}, "hidden communication");
  expect_same_step(cluster, {.compute = 1, .megabytes = 4}, "exposed communication");
  expect_same_step(cluster, {.compute = 1, .megabytes = 4, .compute_waits = false},
                   "communication falls behind");
  expect_same_step(cluster, {.compute = 1, .copies = 5}, "copies fall behind");
  cluster.device.launch_seconds = 1e-3;
  expect_same_step(cluster, {.compute = 0.5}, "the host is late");
}

TEST(RepeatedRounds, StepsBeyondTheRangeOfTimeAreRefused) {
  TraceBuilder builder;
  builder.trace.begin_round();
  builder.op(kMain, 1e6);
  builder.trace.repeat_round(1'000'000'000'000);
  EXPECT_THROW(price(builder.trace, plain_cluster()), Error);
}

}  // namespace
}  // namespace zl::sim
