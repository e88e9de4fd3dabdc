#include <gtest/gtest.h>

#include "core/rank/rank_context.h"
#include "simulator/world.h"

namespace zl::sim {
namespace {

TEST(RecordingDevice, AddressesAreAlignedAndDisjoint) {
  Device device({}, {});
  std::uintptr_t end = 0;
  for (const std::int64_t bytes : {1, 4096, 5000, 64 << 20}) {
    const auto address = reinterpret_cast<std::uintptr_t>(device.reserve(MemorySpace::host, bytes));
    EXPECT_EQ(address % 4096, 0u);
    EXPECT_GE(address, end);
    end = address + static_cast<std::uintptr_t>(bytes);
  }
}

TEST(RecordingDevice, RefusesBeyondItsMemoryUntilReleased) {
  DeviceProperties properties;
  properties.memory = 10000;
  Device device(properties, {});
  std::byte* slab = device.reserve(MemorySpace::device, 6000);
  ASSERT_NE(slab, nullptr);
  EXPECT_EQ(device.reserve(MemorySpace::device, 4001), nullptr);
  EXPECT_NE(device.reserve(MemorySpace::host, 1'000'000), nullptr);
  EXPECT_NE(device.reserve(MemorySpace::device, 4000), nullptr);
  device.release(MemorySpace::device, slab, 6000);
  EXPECT_NE(device.reserve(MemorySpace::device, 6000), nullptr);
}

TEST(RecordingDevice, AnswersProbesAndCountsEvents) {
  Device device({}, {.loss = 5.5});
  EXPECT_EQ(device.read(StreamId::compute, ProbeKind::loss, {}), 5.5);
  EXPECT_EQ(device.read(StreamId::compute, ProbeKind::overflow, {}), 1.0);
  EXPECT_EQ(device.read(StreamId::compute, ProbeKind::squared_norm, {}), 1.0);
  EXPECT_EQ(device.record(StreamId::compute), 0);
  EXPECT_EQ(device.record(StreamId::communication), 1);
}

TEST(RecordingWorld, RunsOnceForAllRanksAndRecords) {
  const auto world = make_world({.ranks = 1024}, {});
  EXPECT_EQ(world->ranks(), 1024);
  EXPECT_EQ(world->executed_ranks(), 1);
  int calls = 0;
  world->run([&](RankHandle handle) {
    ++calls;
    EXPECT_EQ(handle.communicator.rank(), 0);
    EXPECT_EQ(handle.communicator.size(), 1024);
    EXPECT_EQ(handle.communicator.link(), "sim");
    RankContext context(handle.device, handle.communicator);
    Tensor whole = context.allocate(DType::f32, Shape{1024}, MemoryTag::gradient, {"g"});
    const Segment segment{whole.view, whole.view.flat(0, 1)};
    context.collective(
        StreamId::communication,
        {CollectiveKind::reduce_scatter, ReduceOp::sum, Purpose::data, {&segment, 1}});
    EXPECT_EQ(context.reserved(MemorySpace::device), Pool::kSlab);
    EXPECT_EQ(context.trace().events().size(), 2u);
    EXPECT_EQ(context.trace().events().back().wire_bytes, 1023 * 4);
  });
  EXPECT_EQ(calls, 1);
}

TEST(RecordingWorld, RefusesNoRanksAndPassesErrorsOn) {
  EXPECT_THROW(make_world({.ranks = 0}, {}), Error);
  const auto world = make_world({.ranks = 2}, {});
  EXPECT_THROW(world->run([](RankHandle) { throw Error(ErrorCode::failed, "boom"); }), Error);
}

}  // namespace
}  // namespace zl::sim
