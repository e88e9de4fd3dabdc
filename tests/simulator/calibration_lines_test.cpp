// The lines that a calibration tells from traces written by hand: which events give which price.
#include <gtest/gtest.h>

#include <map>

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

// Three steps of ops that differ in one thing, each nanoseconds long, without gaps.
template <class What, class Set>
void add_steps(TraceBuilder& builder, const std::map<What, std::int64_t>& lengths, Set&& set) {
  std::int64_t now = 1000;
  for (int step = 1; step <= 3; ++step) {
    builder.scope.step = step;
    for (const auto& [what, length] : lengths) {
      TraceEvent& event = builder.op(kMain, 1);
      set(event, what);
      event.timing = {now, now + length};
      now += length;
    }
  }
}

TEST(Calibration, TheHostsUpdatesHaveTheirOwnLines) {
  TraceBuilder builder;
  add_steps<StreamId>(
      builder, {{kMain, 1000}, {StreamId::host, 9000}},
      [](TraceEvent& event, StreamId stream) { event.stream = static_cast<std::uint8_t>(stream); });
  for (const bool is_host : {false, true}) {  // on a processor they have one thread
    ClusterSpec cluster = plain_cluster();
    cluster.compute_is_host = is_host;
    const RankCoefficients entry = fit({{&builder.trace, 1, 0}}, cluster).by_ranks[0];
    EXPECT_NEAR(entry.ops[kOpKind<Axpy>][1].seconds(1e9, 0), 1e-6, 1e-12);
    EXPECT_NEAR(entry.host_ops[kOpKind<Axpy>][1].seconds(1e9, 0), 9e-6, 1e-12);
  }
}

// Files of few requests wait for the disk, large ones keep it busy.
TEST(Calibration, SmallAndLargeTransfersHaveTheirOwnLines) {
  const auto nanoseconds = [](std::int64_t bytes) {
    return bytes < 1'000'000 ? 100'000 + bytes : 1'600'000 + bytes / 2;
  };
  TraceBuilder builder;
  std::int64_t now = 1000;
  for (int step = 1; step <= 4; ++step) {
    builder.scope.step = step;
    for (const std::int64_t bytes : {8, 16, 64, 128, 512, 2'000, 8'000, 30'000, 90'000, 200'000}) {
      TraceEvent& event = builder.copy(StreamId::file_in, 1000 * bytes);
      event.type = EventType::transfer;
      event.kind = static_cast<std::uint8_t>(Route::file_to_host);
      event.timing = {now, now + nanoseconds(1000 * bytes)};
      now = event.timing.end_ns;
    }
  }
  const RankCoefficients entry = fit({{&builder.trace, 1, 0}}, plain_cluster()).by_ranks[0];
  const LinearCost& small = entry.routes[static_cast<std::size_t>(Route::file_to_host)];
  const LinearCost& large = entry.large_routes[static_cast<std::size_t>(Route::file_to_host)];
  EXPECT_GT(large.from_bytes, 2 * 512e3) << "what is read and written";
  EXPECT_LT(large.from_bytes, 2 * 2e6);
  EXPECT_NEAR(small.seconds(0, 2 * 8e3), 108e-6, 1e-9);
  EXPECT_NEAR(large.seconds(0, 2 * 1.2e9), 601.6e-3, 1e-6);
}

TEST(Calibration, ProductsWithATransposeHaveTheirOwnLines) {
  TraceBuilder builder;
  add_steps<Variant>(
      builder,
      {{Variant::none, 1000}, {Variant::transposed_a, 5000}, {Variant::transposed_b, 3000}},
      [](TraceEvent& event, Variant variant) {
        event.kind = kOpKind<Gemm>;
        event.purpose = static_cast<std::uint8_t>(variant);
      });
  const RankCoefficients entry = fit({{&builder.trace, 1, 0}}, plain_cluster()).by_ranks[0];
  EXPECT_NEAR(entry.ops[kOpKind<Gemm>][1].seconds(1e9, 0), 1e-6, 1e-12);
  EXPECT_NEAR(entry.gradient_ops[kOpKind<Gemm>][1].seconds(1e9, 0), 5e-6, 1e-12);
  EXPECT_NEAR(entry.forward_ops[kOpKind<Gemm>][1].seconds(1e9, 0), 3e-6, 1e-12);
}

// Ops of a microsecond, a quarter of one apart; between two of them the rank itself scatters, and a
// copy runs, half of it beside that.
TEST(Calibration, WhatARankCommunicatesBetweenOpsIsNoGap) {
  TraceBuilder builder;
  std::int64_t now = 1000;
  for (int step = 1; step <= 4; ++step) {
    builder.scope.step = step;
    for (int i = 0; i < 8; ++i) {
      builder.op(kMain, 1).timing = {now, now + 1000};
      now += 1000 + 250;
      if (i % 2 == 1) continue;
      builder.collective(kWire, CollectiveKind::reduce_scatter, 1000, 1).timing = {now, now + 7000};
      builder.copy(StreamId::copy_in, 1000).timing = {now + 5000, now + 9000};
      now += 9000 + 250 + 250;  // three events are issued in that gap
    }
    now += 2000;
  }
  const RankCoefficients entry = fit({{&builder.trace, 1, 0}}, plain_cluster()).by_ranks[0];
  EXPECT_NEAR(entry.seconds_per_event, 250e-9, 1e-12);
}

// Of two runs of as many events the short one has gaps of 200 ns, the long one of 20 us, which are
// nothing of its steps: the gap that is least off of both is near the short one's.
TEST(Calibration, GapsAreThoseOfRunsThatTheyMatterTo) {
  std::deque<TraceBuilder> programs;
  std::vector<MeasuredTrace> runs;
  for (const auto& [length, gap] : {std::pair{1'000, 200}, {100'000'000, 20'000}}) {
    TraceBuilder& builder = programs.emplace_back();
    std::int64_t now = 1000;
    for (int step = 1; step <= 4; ++step) {
      builder.scope.step = step;
      for (int i = 0; i < 8; ++i) {
        builder.op(kMain, length * 1e-6).timing = {now, now + length};
        now += length + gap;
      }
    }
    runs.push_back({&builder.trace, 1, static_cast<int>(runs.size())});
  }
  const RankCoefficients entry = fit(runs, plain_cluster()).by_ranks[0];
  EXPECT_NEAR(entry.seconds_per_event, 200e-9, 1e-9);
  EXPECT_NEAR(entry.seconds_per_step, 0, 1e-9);
}

// Eleven ops of a microsecond a step; once something else takes the core for 4 ms.
TEST(Calibration, AnInterruptionIsNoPriceWhereRanksHaveCoresOfTheirOwn) {
  TraceBuilder builder;
  for (int step = 1; step <= 3; ++step) {
    builder.scope.step = step;
    std::int64_t now = 10'000'000 * step;
    for (int i = 0; i < 11; ++i) {
      TraceEvent& event = builder.op(kMain, 1);
      event.timing = {now, now + (step == 2 && i == 5 ? 4'000'000 : 1000)};
      now = event.timing.end_ns;
    }
  }
  ClusterSpec cluster = plain_cluster();
  cluster.shared_cores = 2;
  const auto seconds_of = [&](int ranks) {
    return fit({{&builder.trace, ranks, 0}}, cluster)
        .by_ranks[0]
        .ops[kOpKind<Axpy>][1]
        .seconds(1, 0);
  };
  EXPECT_NEAR(seconds_of(1), 1e-6, 1e-12);
  EXPECT_NEAR(seconds_of(4), (21e-6 + 4e-3) / 22, 1e-9);  // they take turns: waiting is their time
}

TEST(Calibration, OnlyTypicalStepsTellPrices) {
  // Of eight steps something else has a core in the third and the fourth.
  TraceBuilder builder;
  for (int step = 1; step <= 9; ++step) {
    builder.scope.step = step;
    const bool is_disturbed = step == 3 || step == 4;
    for (int i = 0; i < 5; ++i) builder.measured_op(is_disturbed ? 3'000 : 1'000);
  }
  const Calibration fitted = fit({{&builder.trace, 1, 0}}, plain_cluster());
  const LinearCost& line = fitted.by_ranks[0].ops[kOpKind<Axpy>][1];
  EXPECT_NEAR(line.seconds(1e9, 0), 1e-6, 1e-12);
  EXPECT_EQ(line.samples, 20) << "four steps of eight";
}

TEST(Calibration, OfRunsThatDoTheSameWorkAllTellPrices) {
  std::deque<TraceBuilder> programs;
  std::vector<MeasuredTrace> runs;
  for (const std::int64_t length : {3'000, 2'000, 5'000, 2'000}) {
    TraceBuilder& builder = programs.emplace_back();
    for (int step = 1; step <= 3; ++step) {
      builder.scope.step = step;
      builder.measured_op(length);
    }
    runs.push_back({&builder.trace, 1, static_cast<int>(runs.size())});
  }
  const Calibration fitted = fit(runs, plain_cluster());
  EXPECT_NEAR(fitted.by_ranks[0].ops[kOpKind<Axpy>][1].seconds(1e9, 0), 3e-6, 1e-12);
}

}  // namespace
}  // namespace zl::sim
