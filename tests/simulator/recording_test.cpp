// The recording world as several ranks of a mesh.
#include <gtest/gtest.h>

#include <vector>

#include "core/base/error.h"
#include "core/parallel/groups.h"
#include "core/rank/rank_context.h"
#include "simulator/communicator.h"
#include "simulator/world.h"

namespace zl::sim {
namespace {

// Groups of every rank of a mesh, through the recording communicator.
TEST(RecordingCommunicator, SplitsAlongTheAxesOfItsMesh) {
  const Mesh mesh{.tensor = 2, .context = 1, .shard = 3, .replicate = 2, .pipeline = 2};
  for (int rank = 0; rank < mesh.ranks(); ++rank) {
    Communicator world(rank, mesh);
    EXPECT_EQ(world.rank(), rank);
    EXPECT_EQ(world.size(), 24);
    for (int again = 0; again < 2; ++again) {
      const Groups groups(world, mesh);
      for (const Axis axis :
           {Axis::data, Axis::tensor, Axis::shard, Axis::replicate, Axis::pipeline}) {
        zl::Communicator& group = groups.of(axis);
        EXPECT_EQ(group.size(), mesh.size(axis)) << name_of(axis);
        EXPECT_EQ(group.rank(), mesh.coordinate(rank, axis)) << name_of(axis);
        group.exchange(StreamId::communication, {}, nullptr);
        EXPECT_THROW(group.split(0, 0), Error);
      }
      EXPECT_EQ(&groups.of(Axis::world), &world);
    }
    EXPECT_THROW(world.split(mesh.ranks(), 0), Error);
  }
}

TEST(RecordingWorld, RunsAsEveryRecordedRankOnADeviceOfItsOwn) {
  const Mesh mesh{.shard = 4, .pipeline = 2};
  SimOptions sim;
  sim.mesh = mesh;
  sim.recorded = {0, 6};
  const auto world = make_world({.ranks = 8}, sim);
  EXPECT_EQ(world->executed_ranks(), 2);
  std::vector<int> ranks;
  std::vector<std::int64_t> addresses;
  world->run([&](RankHandle handle) {
    ranks.push_back(handle.communicator.rank());
    RankContext context(handle.device, handle.communicator, {.mesh = mesh});
    const Tensor tensor = context.allocate(DType::f32, Shape{16}, MemoryTag::activation, {"x"});
    const Message both[] = {
        {.peer = 1 - context.rank(Axis::pipeline), .sends = true, .tensor = tensor.view},
        {.peer = 1 - context.rank(Axis::pipeline), .tensor = tensor.view}};
    context.exchange(StreamId::communication, Axis::pipeline, both);
    const auto& events = context.trace().events();
    addresses.push_back(events.front().id);
    ASSERT_EQ(events.size(), 3u);
    EXPECT_EQ(events[1].id, 0);
    EXPECT_EQ(events[2].id, 1);
    EXPECT_EQ(events[1].stride, 4);
  });
  EXPECT_EQ(ranks, (std::vector<int>{0, 6}));
  EXPECT_EQ(addresses[0], addresses[1]);
  EXPECT_THROW(make_world({.ranks = 4}, sim), Error);
  sim.recorded = {8};
  EXPECT_THROW(make_world({.ranks = 8}, sim), Error);
}

}  // namespace
}  // namespace zl::sim
