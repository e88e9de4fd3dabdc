#include "core/rank/rank_context.h"

#include <gtest/gtest.h>

#include "core/device/world.h"
#include "core/ops/elementwise.h"
#include "tests/core/fake_device.h"

namespace zl {
namespace {

struct RankContextTest : testing::Test {
  test::FakeDevice device;
  test::FakeCommunicator communicator{4};
  RankContext context{device, communicator};

  const TraceEvent& last() { return context.trace().events().back(); }
  Tensor tensor(std::int64_t count, DType dtype = DType::f32) {
    return context.allocate(dtype, Shape{count}, MemoryTag::gradient, {"g", 2});
  }
  void collective(CollectiveKind kind, const std::vector<Segment>& segments) {
    context.collective(StreamId::communication, {kind, ReduceOp::average, Purpose::data, segments});
  }
};

TEST_F(RankContextTest, AllocationsAreInTheLedgerAndTheTrace) {
  {
    Tensor x = tensor(10, DType::bf16);
    EXPECT_EQ(last().type, EventType::allocate);
    EXPECT_EQ(last().kind, static_cast<std::uint8_t>(MemoryTag::gradient));
    EXPECT_EQ(last().bytes_written, 20);
    EXPECT_EQ(context.ledger().total(MemorySpace::device), 20);
    EXPECT_EQ(context.reserved(MemorySpace::device), Pool::kSlab);
  }
  EXPECT_EQ(last().type, EventType::free);
  EXPECT_EQ(last().bytes_written, 20);
  EXPECT_EQ(context.ledger().total(MemorySpace::device), 0);
}

TEST_F(RankContextTest, OpsAreValidatedRecordedAndRunWithTheirTiming) {
  Tensor x = tensor(10), y = tensor(9);
  EXPECT_THROW(context.run(Axpy{x, y}), Error);
  EXPECT_EQ(device.finished, 0);
  ScopeGuard scope(context, Phase::backward, 7);
  context.run(StreamId::copy_in, Axpy{x, x, 2.0, true});
  EXPECT_EQ(device.finished, 1);
  EXPECT_EQ(last().type, EventType::op);
  EXPECT_EQ(last().kind, kOpKind<Axpy>);
  EXPECT_EQ(last().stream, 2);
  EXPECT_EQ(last().scope.phase, Phase::backward);
  EXPECT_EQ(last().scope.unit, 7);
  EXPECT_EQ(last().n, 10);
  EXPECT_EQ(last().bytes_read, 80);
  EXPECT_EQ(last().bytes_written, 40);
  EXPECT_EQ(last().timing.start_ns, 1);
}

TEST_F(RankContextTest, CollectivesCountPayloadAndWire) {
  Tensor a = tensor(10), b = tensor(40), c = tensor(3);
  // Ring over 4 ranks: 2 x 3 x ceil(10 / 4) and 2 x 3 x ceil(3 / 4) elements of 4 bytes.
  collective(CollectiveKind::all_reduce, {{a, a}, {c, c}});
  EXPECT_EQ(last().wire_bytes, (2 * 3 * 3 + 2 * 3 * 1) * 4);
  EXPECT_EQ(last().m, 13);
  EXPECT_EQ(last().n, 2);
  EXPECT_EQ(last().k, 4);
  EXPECT_EQ(last().timing.end_ns, 2);
  collective(CollectiveKind::reduce_scatter, {{b, a}});
  EXPECT_EQ(last().wire_bytes, 3 * 10 * 4);
  EXPECT_EQ(last().bytes_read, 160);
  EXPECT_EQ(last().bytes_written, 40);
  collective(CollectiveKind::all_gather, {{a, b}});
  EXPECT_EQ(last().wire_bytes, 3 * 10 * 4);
  collective(CollectiveKind::broadcast, {{a, a}});
  EXPECT_EQ(last().wire_bytes, (10 * 3 + 3) / 4 * 4);
  EXPECT_THROW(collective(CollectiveKind::all_reduce, {}), Error);
}

TEST_F(RankContextTest, MessagesAreEventsOfTheirOwnAndCountWhatIsSent) {
  Tensor a = tensor(10), b = tensor(6, DType::bf16);
  const std::size_t before = context.trace().events().size();
  const Message messages[] = {{3, true, a}, {1, false, b}};
  context.exchange(StreamId::communication, Axis::data, messages);
  EXPECT_EQ(communicator.exchanged, 2);
  ASSERT_EQ(context.trace().events().size(), before + 2);
  const TraceEvent& sent = context.trace().events()[before];
  const TraceEvent& received = context.trace().events()[before + 1];
  for (const TraceEvent* each : {&sent, &received}) {
    EXPECT_EQ(each->type, EventType::message);
    EXPECT_EQ(each->stream, static_cast<std::uint8_t>(StreamId::communication));
    EXPECT_EQ(each->axis, static_cast<std::uint8_t>(Axis::data));
    EXPECT_EQ(each->k, 4);
  }
  EXPECT_EQ(sent.kind, 1);
  EXPECT_EQ(sent.n, 3);
  EXPECT_EQ(sent.m, 10);
  EXPECT_EQ(sent.wire_bytes, 40);
  EXPECT_EQ(sent.bytes_read, 40);
  EXPECT_EQ(sent.bytes_written, 0);
  EXPECT_EQ(sent.timing.end_ns, 0);  // the call's time is its last event's
  EXPECT_EQ(received.kind, 0);
  EXPECT_EQ(received.n, 1);
  EXPECT_EQ(received.dtype, DType::bf16);
  EXPECT_EQ(received.wire_bytes, 0);
  EXPECT_EQ(received.bytes_read, 0);
  EXPECT_EQ(received.bytes_written, 12);
  EXPECT_EQ(received.timing.end_ns, 4);
}

TEST_F(RankContextTest, UntimedEventsAreRecordedAllTheSame) {
  Tensor x = tensor(10);
  context.time_events(false);
  context.run(Axpy{x, x});
  EXPECT_EQ(last().type, EventType::op);
  EXPECT_EQ(device.finished, 1);
  EXPECT_EQ(last().timing.end_ns, 0);
  collective(CollectiveKind::all_reduce, {{x, x}});
  EXPECT_EQ(last().timing.end_ns, 0);
  context.time_events(true);
  context.run(Axpy{x, x});
  EXPECT_EQ(last().timing.end_ns, 2);
}

TEST(LibraryWorkspace, IsInTheLedgerAndTakenBackBeforeItsMemory) {
  test::FakeDevice device;
  device.workspace = 3 << 20;
  test::FakeCommunicator communicator;
  {
    RankContext context(device, communicator);
    EXPECT_EQ(device.lent_bytes, 3 << 20);
    EXPECT_EQ(device.slabs.count(device.lent), 1u);  // the first block of the first slab
    const auto& tags = context.ledger().current(MemorySpace::device);
    EXPECT_EQ(tags[static_cast<std::size_t>(MemoryTag::workspace)], 3 << 20);
  }
  EXPECT_EQ(device.lent, nullptr);
  RankOptions small;
  small.device_memory = 1 << 20;
  try {
    RankContext context(device, communicator, small);
    FAIL() << "a workspace larger than the budget";
  } catch (const OutOfMemory& error) {
    EXPECT_NE(std::string(error.what()).find("library workspace"), std::string::npos);
  }
}

TEST(BackendRegistry, AsksForTheReasonOnlyWhenItMatters) {
  int asked = 0;
  std::string why = "no such card";
  BackendRegistry registry;
  registry.add(
      "gpu", [](const WorldOptions&) { return nullptr; },
      [&] {
        ++asked;
        return why;
      });
  registry.add("cpu", [](const WorldOptions&) { return nullptr; });
  EXPECT_NO_THROW(registry.make("cpu", {}));
  EXPECT_EQ(asked, 0);
  EXPECT_EQ(registry.names(), std::vector<std::string>{"cpu"});
  EXPECT_EQ(registry.missing().at("gpu"), "no such card");
  try {
    registry.make("gpu", {});
    FAIL() << "a missing backend";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::unavailable);
    EXPECT_NE(std::string(error.what()).find("no such card"), std::string::npos);
  }
  why.clear();
  EXPECT_NO_THROW(registry.make("gpu", {}));
}

TEST_F(RankContextTest, ScopesNestAndComeBack) {
  ScopeGuard outer(context, Phase::forward, 1);
  {
    ScopeGuard inner(context, Phase::recompute, 2);
    EXPECT_EQ(context.scope().phase, Phase::recompute);
  }
  EXPECT_EQ(context.scope().phase, Phase::forward);
  EXPECT_EQ(context.scope().unit, 1);
}

TEST_F(RankContextTest, SynchronisationIsRecorded) {
  const EventId event = context.record(StreamId::communication);
  EXPECT_EQ(last().type, EventType::record);
  EXPECT_EQ(last().id, event);
  context.wait(StreamId::compute, event);
  EXPECT_EQ(last().type, EventType::wait);
  EXPECT_EQ(last().id, event);
  Tensor x = tensor(1);
  context.read(ProbeKind::loss, x);
  EXPECT_EQ(last().type, EventType::synchronize);
}

TEST(RankContextOptions, WithoutATraceNothingIsKeptButMemoryIsCounted) {
  test::FakeDevice device;
  test::FakeCommunicator communicator;
  RankContext context(device, communicator, {.device_memory = 4096, .record_trace = false});
  Tensor x = context.allocate(DType::f32, Shape{4}, MemoryTag::parameter, {"w"});
  context.run(Fill{x, 1.0});
  EXPECT_EQ(device.finished, 1);
  EXPECT_TRUE(context.trace().events().empty());
  EXPECT_EQ(context.ledger().total(MemorySpace::device), 16);
  EXPECT_THROW(context.allocate(DType::f32, Shape{2000}, MemoryTag::parameter, {"w"}), OutOfMemory);
  EXPECT_NO_THROW(
      context.allocate(DType::f32, Shape{2000}, MemoryTag::optimizer, {"m"}, MemorySpace::host));
}

// The share of a rank on a processor holds all spaces, that of a rank with a GPU the host's only.
TEST(RankContextOptions, SpacesOfOneMemoryDrawFromOneShare) {
  test::FakeDevice device;
  test::FakeCommunicator communicator;
  device.host_memory = 10 << 20;
  const auto hold = [](RankContext& context, std::int64_t mebibytes, MemorySpace space,
                       const char* what) {
    return context.allocate(DType::u8, Shape{mebibytes << 20}, MemoryTag::optimizer, {what}, space);
  };
  for (const bool one_memory : {false, true}) {
    device.memory_is_host = one_memory;
    RankContext context(device, communicator);
    const Tensor pinned = hold(context, 5, MemorySpace::pinned_host, "pinned state");
    const Tensor weights = hold(context, 4, MemorySpace::device, "weights");
    const MemorySpace space = one_memory ? MemorySpace::device : MemorySpace::host;
    EXPECT_NO_THROW(hold(context, 1, space, "state"));
    try {
      hold(context, 6, space, "more");
      FAIL();
    } catch (const OutOfMemory& error) {
      const std::string text = error.what();

      EXPECT_NE(text.find("6.00 MiB requested for 'more'"), std::string::npos) << text;
      EXPECT_NE(text.find(" of 10.00 MiB, this rank's share"), std::string::npos) << text;
      EXPECT_NE(text.find("largest holders: optimizer 'pinned state' 5.00 MiB"), std::string::npos)
          << text;
      EXPECT_EQ(text.find("'weights' 4.00 MiB") != std::string::npos, one_memory) << text;
    }
    if (!one_memory) {
      EXPECT_NO_THROW(hold(context, 600, MemorySpace::device, "more weights"));
    }
  }
}

}  // namespace
}  // namespace zl
