// Ranks that come to a collective and whose data does not: one rank plays its part by hand.
#include <gtest/gtest.h>

#include <thread>

#include "backends/mpi/header.h"
#include "backends/mpi/messages.h"
#include "backends/mpi/world.h"
#include "tests/backends_cpu_world/group_programs.h"
#include "tests/mpi/processes.h"

namespace zl::mpi {
namespace {

using namespace cpu::test;
using std::chrono::milliseconds;

// Rank 0 is patient: the others are to be first.
std::unique_ptr<World> impatient_world(milliseconds timeout) {
  return make_world({.ranks = ranks(),
                     .threads_per_rank = 1,
                     .collective_timeout = me() == 0 ? milliseconds(600'000) : timeout});
}

std::vector<Segment> segments(std::vector<Array>& arrays) {
  std::vector<Segment> all;
  for (Array& each : arrays) all.push_back({each.view(), each.view()});
  return all;
}

Collective broadcast(const std::vector<Segment>& of) {
  return {CollectiveKind::broadcast, ReduceOp::sum, Purpose::data, of};
}

void wait_for(Requests& requests) {
  while (!requests.done()) std::this_thread::sleep_for(milliseconds(1));
}

// What a rank says first in a collective of the compute stream.
void come(const Call& call) {
  const Header mine(call);
  std::vector<Header> theirs(static_cast<std::size_t>(ranks()));
  Requests requests(*Group::world(), collective_channel(StreamId::compute));
  for (int peer = 1; peer < ranks(); ++peer) {
    requests.receive(peer, &theirs[static_cast<std::size_t>(peer)], sizeof(Header));
    requests.send(peer, &mine, sizeof(Header));
  }
  wait_for(requests);
}

TEST(MpiDeadline, DataThatDoesNotMoveIsNamedWithWhoDoesNotSendIt) {
  const std::string message = error_of(*impatient_world(milliseconds(400)), [](RankHandle rank) {
    std::vector<Array> arrays(1, Array(DType::f32, 100));
    const std::vector<Segment> all = segments(arrays);
    if (me() > 0) return rank.communicator.run(StreamId::compute, broadcast(all), nullptr);
    come(call_of(broadcast(all)));
    receive_one(rank.communicator, StreamId::communication, 1, arrays[0].view());
    synchronize(rank);
  });
  for (const char* part : {"collective timed out after 400 ms: rank ",
                           " waits at #1 of the stream 'compute' in "
                           "broadcast of 1 tensor fp32 [100]",
                           "; all are there, but no data moves; not sent by: rank 0"}) {
    EXPECT_NE(message.find(part), std::string::npos) << part << " in: " << message;
  }
}

// Longer than the time-out in all, never between two of them.
TEST(MpiDeadline, BeginsAnewWithEveryMessageThatArrives) {
  constexpr int kTensors = 4;
  const std::string message = error_of(*impatient_world(milliseconds(4000)), [](RankHandle rank) {
    std::vector<Array> arrays(kTensors, Array(DType::f32, 100));
    const std::vector<Segment> all = segments(arrays);
    if (me() > 0) {
      rank.communicator.run(StreamId::compute, broadcast(all), nullptr);
      for (const Array& each : arrays) EXPECT_EQ(each.get(99), 7);
      return;
    }
    come(call_of(broadcast(all)));
    for (Array& each : arrays) {
      std::this_thread::sleep_for(milliseconds(1300));
      each.set(99, 7);
      Requests requests(*Group::world(), collective_channel(StreamId::compute));
      for (int peer = 1; peer < ranks(); ++peer) {
        requests.send(peer, each.bytes.data(), each.view().bytes());
      }
      wait_for(requests);
    }
  });
  EXPECT_EQ(message, "");
}

TEST(MpiMessages, LongOnesTravelInParts) {
  constexpr std::int64_t kCount = (std::int64_t{70} << 20) / 4 + 3;
  run_ranks(ranks(), [](RankHandle rank) {
    std::vector<Array> arrays(2, Array(DType::f32, kCount));
    for (std::int64_t i = 0; me() == 0 && i < kCount; i += 1000) {
      arrays[0].set(i, static_cast<double>(i));
      arrays[1].set(i, static_cast<double>(-i));
    }
    const std::vector<Segment> all = segments(arrays);
    rank.communicator.run(StreamId::compute, broadcast(all), nullptr);
    for (std::int64_t i = 0; i < kCount; i += 1000) {
      ASSERT_EQ(arrays[0].get(i), static_cast<double>(i));
      ASSERT_EQ(arrays[1].get(i), static_cast<double>(-i));
    }
  });
}

}  // namespace
}  // namespace zl::mpi
