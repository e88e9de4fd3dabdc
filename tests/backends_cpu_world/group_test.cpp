// Messages and groups of ranks against serial references; whatever ranks make_ranks gives.
#include <gtest/gtest.h>

#include "tests/backends_cpu_world/group_programs.h"

namespace zl::cpu::test {
namespace {

class GroupTest : public testing::TestWithParam<int> {};

TEST_P(GroupTest, RandomMessagesArriveWhole) {
  const int ranks = GetParam();
  for (unsigned seed = 1; seed <= 8; ++seed) {
    run_ranks(ranks, [&](RankHandle rank) {
      exchange_rounds(rank, rank.communicator, random_rounds(seed, ranks));
    });
  }
}

TEST_P(GroupTest, MessagesWithinSplitGroups) {
  const int ranks = GetParam();
  run_ranks(ranks, [&](RankHandle rank) {
    const auto group = rank.communicator.split(rank.communicator.rank() % 2, 0);
    if (group->size() == 1) return;
    const auto seed = static_cast<unsigned>(rank.communicator.rank() % 2 + 1);
    exchange_rounds(rank, *group, random_rounds(seed, group->size()));
  });
}

TEST_P(GroupTest, SplitInEveryWay) { run_ranks(GetParam(), split_in_every_way); }

// The sender's one call is the receiver's two, and the other way round.
TEST_P(GroupTest, ACallNeedNotHaveThePeersMessagesTogether) {
  run_ranks(GetParam(), [&](RankHandle rank) {
    const int me = rank.communicator.rank();
    const DeviceArray a(rank.device, one_integer(me == 0 ? 3 : 0));
    const DeviceArray b(rank.device, one_integer(me == 0 ? 4 : 0));
    for (const bool together : {false, true}) {
      if (me > 1) break;
      const std::vector<Message> messages = {{1 - me, me == 0, a.view()},
                                             {1 - me, me == 0, b.view()}};
      if (together == (me == 0)) {
        rank.communicator.exchange(StreamId::communication, messages, nullptr);
      } else {
        for (const Message& each : messages) {
          rank.communicator.exchange(StreamId::communication, {&each, 1}, nullptr);
        }
      }
    }
    synchronize(rank);
    if (me > 1) return;
    EXPECT_EQ(a.get().get(0), 3);
    EXPECT_EQ(b.get().get(0), 4);
  });
}

// Rank 0 waits for the last rank first, whose message comes only after rank 1 has got rid of its
// own to rank 0.
TEST_P(GroupTest, NoMessageOfACallWaitsForAnother) {
  const int ranks = GetParam(), last = ranks - 1;
  if (ranks < 3) return;
  run_ranks(ranks, [&](RankHandle rank) {
    Communicator& world = rank.communicator;
    const int me = world.rank();
    const DeviceArray a(rank.device, one_integer(me)), b(rank.device, one_integer(me));
    if (me == 0) {
      const Message both[] = {{last, false, a.view()}, {1, false, b.view()}};
      world.exchange(StreamId::compute, both, nullptr);
    } else if (me == 1) {
      send_one(world, StreamId::compute, 0, a.view());
      send_one(world, StreamId::compute, last, a.view());
    } else if (me == last) {
      receive_one(world, StreamId::compute, 1, b.view());
      send_one(world, StreamId::compute, 0, a.view());
    }
    synchronize(rank);
    if (me == 0) {
      EXPECT_EQ(a.get().get(0), last);
      EXPECT_EQ(b.get().get(0), 1);
    }
  });
}

TEST_P(GroupTest, ARankSendsItselfNothing) {
  const int ranks = GetParam();
  run_ranks(ranks, [&](RankHandle rank) {
    const DeviceArray a(rank.device, one_integer(1));
    for (const int peer : {rank.communicator.rank(), -1, ranks}) {
      try {
        send_one(rank.communicator, StreamId::compute, peer, a.view());
        ADD_FAILURE() << peer;
      } catch (const Error& error) {
        EXPECT_EQ(error.code(), ErrorCode::failed);
        EXPECT_NE(std::string(error.what()).find("the peer must be another rank"),
                  std::string::npos);
      }
    }
    EXPECT_THROW(rank.communicator.split(-1, 0), Error);
    rank.communicator.exchange(StreamId::compute, {}, nullptr);
  });
}

INSTANTIATE_TEST_SUITE_P(Worlds, GroupTest, testing::Range(2, 9),
                         [](const auto& test) { return std::to_string(test.param) + "_ranks"; });

struct MeshCase {
  Mesh mesh;
  std::string name;
};

class GroupMeshTest : public testing::TestWithParam<MeshCase> {};

TEST_P(GroupMeshTest, SumsAlongEachAxis) {
  const Mesh& mesh = GetParam().mesh;
  run_ranks(mesh.ranks(), [&](RankHandle rank) { add_along_axes(rank, mesh); });
}

INSTANTIATE_TEST_SUITE_P(
    Worlds, GroupMeshTest,
    testing::Values(MeshCase{{.tensor = 2, .shard = 2, .pipeline = 2}, "8_2x2x2"},
                    MeshCase{{.tensor = 2, .shard = 2, .replicate = 2}, "8_hybrid"},
                    MeshCase{{.tensor = 3, .pipeline = 2}, "6_3x2"},
                    MeshCase{{.tensor = 2, .pipeline = 2}, "4_2x2"},
                    MeshCase{{.pipeline = 3}, "3_one_axis"}),
    [](const auto& test) { return test.param.name; });

// A slow link: a message lasts at least its bytes over the bandwidth, on both sides.
TEST(SlowLink, HoldsAMessageForItsTransferTime) {
  make_ranks({.ranks = 3, .threads_per_rank = 1, .link_bandwidth = 1e6})->run([](RankHandle rank) {
    const int me = rank.communicator.rank();
    if (me > 1) return;
    const Array content = input(DType::f32, 2000, 0, 0);
    const DeviceArray a(rank.device, me == 0 ? content : Array(DType::f32, 2000));
    const Message message{1 - me, me == 0, a.view()};
    Timing timing;
    rank.communicator.exchange(StreamId::communication, {&message, 1}, &timing);
    rank.device.synchronize(StreamId::communication);
    EXPECT_GE(timing.end_ns - timing.start_ns, 8'000'000);
    EXPECT_TRUE(a.get() == content);
  });
}

}  // namespace
}  // namespace zl::cpu::test
