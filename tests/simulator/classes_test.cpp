// Several classes of ranks priced together: who waits for whom, and deadlocks that are named.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "core/base/error.h"
#include "simulator/timeline.h"
#include "tests/simulator/trace_builder.h"

namespace zl::sim {
namespace {

using test::kMain;
using test::kMs;
using test::kWire;
using test::links_without_latency;
using test::plain_cluster;
using test::sum_of_parts;
using test::TraceBuilder;

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

// A rank reduces (4 ms) what its first pass (2 ms) made, sends it on (1 ms) and has another pass
// and its update (1 ms each).
TEST(Classes, ReductionsAndMessagesWaitAsTheSoftwareDoes) {
  TraceBuilder first, second;
  first.scope.micro = second.scope.micro = 0;
  first.scope.phase = Phase::backward;
  first.op(kMain, 2);
  first.record(kMain, 0);
  first.scope.phase = Phase::reduce;
  first.wait(kWire, 0);
  first.op(kWire, 4);
  first.scope.phase = Phase::backward;
  first.record(kWire, 1);
  first.wait(kMain, 1);
  first.scope.phase = second.scope.phase = Phase::other;
  first.wait(kWire, 0);
  first.message(kWire, true, 1, 2).bytes_read = 1'000'000;
  second.message(kWire, false, 0, 2).bytes_written = 1'000'000;
  first.scope.phase = Phase::backward;
  first.op(kMain, 1);
  first.scope.phase = Phase::optimizer;
  first.op(kMain, 1);
  const std::vector<RankTrace> traces{{&first.trace, {0}}, {&second.trace, {1}}};
  ClusterSpec cluster = links_without_latency(2);
  const auto pass_update_message = [&] {
    const std::vector<Timeline> timelines = price(traces, cluster);
    const std::vector<EventTime>& events = timelines[0].events;
    return std::vector<std::int64_t>{events[events.size() - 2].end / kMs,
                                     events[events.size() - 1].end / kMs, timelines[1].total / kMs};
  };
  EXPECT_EQ(pass_update_message(), (std::vector<std::int64_t>{7, 8, 7}));
  SoftwareKernels& software = cluster.device.software;
  // The message goes beside the reduction, with half of the link; the pass still waits for it.
  software.message_stream = true;
  EXPECT_EQ(pass_update_message(), (std::vector<std::int64_t>{7, 8, 4}));
  software.reduces_last = true;
  EXPECT_EQ(pass_update_message(), (std::vector<std::int64_t>{3, 7, 4}));
  // On the one stream it goes behind the reduction, and the update waits for the stream.
  software.message_stream = false;
  EXPECT_EQ(pass_update_message(), (std::vector<std::int64_t>{3, 8, 7}));
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
    builder->scope = {
        .phase = Phase::backward, .unit = static_cast<std::int16_t>(3 + peer), .step = 2};
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

}  // namespace
}  // namespace zl::sim
