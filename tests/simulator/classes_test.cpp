// Several classes of ranks priced together: pipelines with known makespans, collectives that wait
// for the later class, and deadlocks that are named.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "core/base/error.h"
#include "simulator/timeline.h"
#include "tests/simulator/trace_builder.h"

namespace zl::sim {
namespace {

using test::kMain;
using test::kMillisecond;
using test::kWire;
using test::plain_cluster;
using test::TraceBuilder;
constexpr std::int64_t kMs = kMillisecond;

ClusterSpec links_without_latency(int devices) {
  ClusterSpec cluster = plain_cluster(devices);
  cluster.intra.hop_seconds = cluster.inter.hop_seconds = {0, 0, 0};
  return cluster;
}

// Stage `rank` of a pipeline of `stages` ranks; takes 1 ms forward and 2 ms backward if not told.
class Stage {
 public:
  Stage(int rank, int stages, double forward = 1, double backward = 2)
      : rank_(rank), stages_(stages), forward_(forward), backward_(backward) {}

  TraceBuilder builder;

  void forward() { run(forward_, rank_ - 1, rank_ + 1, Phase::forward); }
  void backward() { run(backward_, rank_ + 1, rank_ - 1, Phase::backward); }

 private:
  void run(double milliseconds, int from, int to, Phase phase) {
    builder.scope.phase = phase;
    if (from >= 0 && from < stages_) {
      builder.message(kWire, false, from, stages_);
      order(kWire, kMain);
    }
    builder.op(kMain, milliseconds);
    if (to < 0 || to >= stages_) return;
    order(kMain, kWire);
    builder.message(kWire, true, to, stages_);
  }
  void order(StreamId first, StreamId second) {
    builder.record(first, id_);
    builder.wait(second, id_++);
  }

  int rank_, stages_;
  double forward_, backward_;
  std::int64_t id_ = 0;
};

void gpipe(Stage& stage, int micro_batches) {
  for (int i = 0; i < micro_batches; ++i) stage.forward();
  for (int i = 0; i < micro_batches; ++i) stage.backward();
}

void one_forward_one_backward(Stage& stage, int rank, int stages, int micro_batches) {
  const int warm_up = std::min(micro_batches, stages - 1 - rank);
  for (int i = 0; i < warm_up; ++i) stage.forward();
  for (int i = warm_up; i < micro_batches; ++i) {
    stage.forward();
    stage.backward();
  }
  for (int i = 0; i < warm_up; ++i) stage.backward();
}

std::vector<Timeline> price_stages(const std::vector<Stage>& stages, const ClusterSpec& cluster) {
  std::vector<RankTrace> traces;
  for (std::size_t i = 0; i < stages.size(); ++i) {
    traces.push_back({&stages[i].builder.trace, {static_cast<int>(i)}});
  }
  return price(traces, cluster);
}

std::int64_t makespan(const std::vector<Timeline>& timelines) {
  std::int64_t last = 0;
  for (const Timeline& timeline : timelines) last = std::max(last, timeline.total);
  return last;
}

std::int64_t sum_of_parts(const StepPrice& step) {
  return step.compute + step.exposed_communication + step.optimizer + step.offload_stall +
         step.bubble + step.host;
}

// SPECS_PARALLEL 3.4: both schedules take (m + p - 1)(F + B), and a stage idles (p - 1)(F + B).
TEST(Classes, PipelinesTakeWhatTheClosedFormsSay) {
  for (const int p : {2, 3, 4, 8}) {
    for (const int m : {1, 2, 4, 8, 13}) {
      for (const bool interleaves : {false, true}) {
        std::vector<Stage> stages;
        for (int rank = 0; rank < p; ++rank) {
          stages.emplace_back(rank, p);
          if (interleaves) {
            one_forward_one_backward(stages.back(), rank, p, m);
          } else {
            gpipe(stages.back(), m);
          }
        }
        const std::vector<Timeline> timelines = price_stages(stages, links_without_latency(p));
        EXPECT_EQ(makespan(timelines), 3 * (m + p - 1) * kMs) << p << " stages, " << m;
        // The first stage ends the step: all that it does not compute is bubble.
        const StepPrice& first = timelines.front().steps.front();
        EXPECT_EQ(first.bubble, 3 * (p - 1) * kMs);
        for (const Timeline& timeline : timelines) {
          EXPECT_EQ(sum_of_parts(timeline.steps[0]), timeline.total);
          EXPECT_EQ(timeline.steps[0].compute, 3 * m * kMs);
        }
      }
    }
  }
}

// SPECS_PARALLEL 3.4, uneven stages: sum f + sum b + (m - 1)(max f + max b).
TEST(Classes, GPipeOfUnevenStagesIsBoundByTheSlowest) {
  const unsigned seed = std::random_device{}();
  SCOPED_TRACE(seed);
  std::mt19937 random(seed);
  for (int trial = 0; trial < 50; ++trial) {
    const int p = 2 + static_cast<int>(random() % 5), m = 1 + static_cast<int>(random() % 9);
    std::vector<Stage> stages;
    int sum = 0, slowest_forward = 0, slowest_backward = 0;
    for (int rank = 0; rank < p; ++rank) {
      const int f = 1 + static_cast<int>(random() % 9), b = 1 + static_cast<int>(random() % 9);
      sum += f + b;
      slowest_forward = std::max(slowest_forward, f);
      slowest_backward = std::max(slowest_backward, b);
      gpipe(stages.emplace_back(rank, p, f, b), m);
    }
    EXPECT_EQ(makespan(price_stages(stages, links_without_latency(p))),
              (sum + (m - 1) * (slowest_forward + slowest_backward)) * kMs);
  }
}

TEST(Classes, OneMicroBatchPaysEveryHop) {
  for (const int p : {2, 5, 12}) {
    std::vector<Stage> stages;
    for (int rank = 0; rank < p; ++rank) gpipe(stages.emplace_back(rank, p), 1);
    // Nodes of eight: 1 us within, 10 us between the eighth rank and the ninth.
    const std::int64_t within = 1'000'000, between = 10'000'000;
    const std::int64_t hops = p <= 8 ? (p - 1) * within : (p - 2) * within + between;
    EXPECT_EQ(makespan(price_stages(stages, plain_cluster(p))), 3 * p * kMs + 2 * hops);
  }
}

TEST(Classes, AMessageTakesItsBytesOverTheLink) {
  TraceBuilder first, second;
  first.message(kWire, true, 1, 2).bytes_read = 3'000'000;
  second.message(kWire, false, 0, 2).bytes_written = 3'000'000;
  const std::vector<RankTrace> traces{{&first.trace, {0}}, {&second.trace, {1}}};
  EXPECT_EQ(price(traces, plain_cluster(2))[1].total, 3 * kMs + 1'000'000);
  first.trace.clear();
  second.trace.clear();
  // A group of two with stride 8: between nodes, a tenth of the bandwidth.
  TraceEvent& sent = first.message(kWire, true, 1, 2);
  TraceEvent& received = second.message(kWire, false, 0, 2);
  sent.bytes_read = received.bytes_written = 3'000'000;
  sent.stride = received.stride = 8;
  const std::vector<RankTrace> strided{{&first.trace, {0}}, {&second.trace, {8}}};
  EXPECT_EQ(price(strided, plain_cluster(16))[1].total, 30 * kMs + 10'000'000);
}

TEST(Classes, AReceiveHoldsUpItsStreamOnly) {
  TraceBuilder first, second;
  // Posted first, and what the other waits for is sent later on another stream.
  first.message(kWire, false, 1, 2);
  first.op(kMain, 5);
  first.record(kMain, 0);
  first.wait(StreamId::copy_out, 0);
  first.message(StreamId::copy_out, true, 1, 2);
  first.record(kWire, 1);
  first.wait(kMain, 1);
  first.op(kMain, 1);
  second.message(StreamId::copy_out, false, 0, 2);
  second.record(StreamId::copy_out, 0);
  second.wait(kMain, 0);
  second.op(kMain, 3);
  second.record(kMain, 1);
  second.wait(kWire, 1);
  second.message(kWire, true, 0, 2);
  const std::vector<RankTrace> traces{{&first.trace, {0}}, {&second.trace, {1}}};
  const std::vector<Timeline> timelines = price(traces, links_without_latency(2));
  EXPECT_EQ(timelines[0].total, 9 * kMs);
  EXPECT_EQ(timelines[0].steps[0].bubble, 3 * kMs);
  EXPECT_EQ(timelines[1].steps[0].bubble, 5 * kMs);
}

TEST(Classes, MessagesOfOneExchangeCross) {
  TraceBuilder first, second;
  std::vector<TraceEvent*> sends;
  for (auto [builder, peer] : {std::pair{&first, 1}, std::pair{&second, 0}}) {
    builder->op(kMain, peer == 1 ? 2 : 6);
    builder->message(kMain, false, peer, 2);
    sends.push_back(&builder->message(kMain, true, peer, 2));
    sends.back()->id = 1;
    builder->op(kMain, 1);
  }
  const std::vector<RankTrace> traces{{&first.trace, {0}}, {&second.trace, {1}}};
  const std::vector<Timeline> timelines = price(traces, links_without_latency(2));
  EXPECT_EQ(timelines[0].total, 7 * kMs);
  EXPECT_EQ(timelines[0].steps[0].bubble, 4 * kMs);
  EXPECT_EQ(timelines[1].total, 7 * kMs);
  // The same as two calls, each waiting for its message: both wait for ever.
  for (TraceEvent* send : sends) send->id = 0;
  EXPECT_THROW(price(traces, links_without_latency(2)), Error);
}

// A ring within one class: everybody sends and receives at the same time.
TEST(Classes, ARingOfAlikeRanksWaitsForNobody) {
  TraceBuilder ring;
  ring.message(kMain, true, 1, 4).bytes_read = 2'000'000;
  TraceEvent& received = ring.message(kMain, false, 3, 4);
  received.bytes_written = 2'000'000;
  received.id = 1;
  const std::vector<RankTrace> all{{&ring.trace, {0, 1, 2, 3}}};
  EXPECT_EQ(price(all, plain_cluster(4))[0].total, 2 * kMs + 1'000'000);
  EXPECT_EQ(price(ring.trace, plain_cluster(4)).total, 2 * kMs + 1'000'000);
}

TEST(Classes, ACollectiveStartsWithTheLastClassOfItsGroup) {
  TraceBuilder early, late;
  for (auto [builder, ms] : {std::pair{&early, 2.0}, std::pair{&late, 7.0}}) {
    builder->op(kMain, ms);
    builder->collective(kMain, CollectiveKind::all_gather, 3'000'000, 4);
    builder->op(kMain, 1);
  }
  const std::vector<RankTrace> traces{{&early.trace, {0, 1, 2}}, {&late.trace, {3}}};
  const std::vector<Timeline> timelines = price(traces, links_without_latency(4));
  for (const Timeline& timeline : timelines) {
    EXPECT_EQ(timeline.events[1].start, 7 * kMs);
    EXPECT_EQ(timeline.total, 11 * kMs);
    EXPECT_EQ(timeline.steps[0].exposed_communication, 3 * kMs);
    EXPECT_EQ(sum_of_parts(timeline.steps[0]), timeline.total);
  }
  EXPECT_EQ(timelines[0].steps[0].bubble, 5 * kMs);
  EXPECT_EQ(timelines[1].steps[0].bubble, 0);
  EXPECT_EQ(timelines[0].critical_path, (std::vector<std::int32_t>{1, 2}));
  EXPECT_EQ(timelines[1].critical_path, (std::vector<std::int32_t>{0, 1, 2}));
}

// Two stages of two data-parallel ranks: gradients are reduced within the stage only.
TEST(Classes, GroupsOfOtherRanksAreNotWaitedFor) {
  TraceBuilder early, late;
  for (auto [builder, ms] : {std::pair{&early, 2.0}, std::pair{&late, 7.0}}) {
    builder->op(kMain, ms);
    builder->collective(kMain, CollectiveKind::all_gather, 3'000'000, 2);
  }
  const std::vector<RankTrace> traces{{&early.trace, {0, 1}}, {&late.trace, {2, 3}}};
  EXPECT_EQ(price(traces, links_without_latency(4))[0].total, 5 * kMs);
}

template <typename Traces>
std::string deadlock_of(const Traces& traces) {
  try {
    price(traces, plain_cluster(2));
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::infeasible);
    return error.what();
  }
  return "";
}

TEST(Classes, ADeadlockNamesWhoWaitsForWhat) {
  TraceBuilder first, second;
  for (auto [builder, peer] : {std::pair{&first, 1}, std::pair{&second, 0}}) {
    builder->scope = {Phase::backward, static_cast<std::int16_t>(3 + peer), 2};
    builder->op(kMain, 1);
    builder->message(kMain, false, peer, 2);
    builder->message(kMain, true, peer, 2);
  }
  const std::vector<RankTrace> traces{{&first.trace, {0}}, {&second.trace, {1}}};
  EXPECT_EQ(deadlock_of(traces),
            "deadlock: ranks wait for what no other rank sends or runs: rank 0 waits in step 2 at "
            "event 1, receive from 1 (stream 0, unit 4, backward); rank 1 waits in step 2 at "
            "event 1, receive from 0 (stream 0, unit 3, backward)");
}

TEST(Classes, WhatNobodyReceivesOrRunsIsADeadlock) {
  TraceBuilder first, second;
  first.message(kMain, true, 1, 2);
  first.message(kMain, true, 1, 2);
  second.message(kMain, false, 0, 2);
  const std::vector<RankTrace> traces{{&first.trace, {0}}, {&second.trace, {1}}};
  EXPECT_EQ(deadlock_of(traces),
            "deadlock: rank 0 sends 2 messages to rank 1, which receives 1; the first left over "
            "is send to 1 (stream 0, unit 0, forward)");
  second.message(kMain, false, 0, 2);
  EXPECT_EQ(deadlock_of(traces), "");
  first.collective(kMain, CollectiveKind::all_reduce, 8, 2);
  EXPECT_NE(deadlock_of(traces).find("rank 0 waits in step 1 at event 2, all_reduce"),
            std::string::npos);
  second.collective(kMain, CollectiveKind::all_gather, 8, 2);
  const std::string different = deadlock_of(traces);
  EXPECT_NE(different.find("all_reduce"), std::string::npos) << different;
  EXPECT_NE(different.find("all_gather"), std::string::npos) << different;
}

TEST(Classes, ARankIsOfOneClass) {
  TraceBuilder builder;
  builder.op(kMain, 1);
  const std::vector<RankTrace> twice{{&builder.trace, {0, 1}}, {&builder.trace, {1}}};
  EXPECT_THROW(price(twice, plain_cluster(2)), Error);
  const std::vector<RankTrace> all{{&builder.trace}, {&builder.trace}};
  EXPECT_THROW(price(all, plain_cluster(2)), Error);
}

// The order in which classes are given does not move an event.
TEST(Classes, TheOrderOfTheClassesDoesNotMatter) {
  const int p = 4, m = 8;
  std::vector<Stage> stages;
  for (int rank = 0; rank < p; ++rank) {
    one_forward_one_backward(stages.emplace_back(rank, p), rank, p, m);
  }
  const std::vector<Timeline> timelines = price_stages(stages, plain_cluster(p));
  std::vector<int> order{0, 1, 2, 3};
  while (std::next_permutation(order.begin(), order.end())) {
    std::vector<RankTrace> traces;
    for (const int rank : order) {
      traces.push_back({&stages[static_cast<std::size_t>(rank)].builder.trace, {rank}});
    }
    const std::vector<Timeline> again = price(traces, plain_cluster(p));
    for (std::size_t i = 0; i < order.size(); ++i) {
      const auto rank = static_cast<std::size_t>(order[i]);
      ASSERT_EQ(again[i].total, timelines[rank].total);
      ASSERT_EQ(again[i].steps[0].bubble, timelines[rank].steps[0].bubble);
    }
  }
}

}  // namespace
}  // namespace zl::sim
