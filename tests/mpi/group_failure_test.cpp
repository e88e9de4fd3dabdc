// Messages and groups of processes when ranks differ, fail, end or do not come.
#include <gtest/gtest.h>

#include "backends/mpi/messages.h"
#include "backends/mpi/world.h"
#include "core/threads/failures.h"
#include "tests/backends_cpu_world/group_programs.h"
#include "tests/mpi/processes.h"

namespace zl::mpi {
namespace {

using namespace cpu::test;

// What the world threw here; the next run must not notice.
std::string message_of_groups(const std::function<void(RankHandle)>& program,
                              std::chrono::milliseconds timeout = std::chrono::minutes(1)) {
  const std::string message = error_of(
      *make_world({.ranks = ranks(), .threads_per_rank = 1, .collective_timeout = timeout}),
      program);
  run_ranks(ranks(), [](RankHandle rank) {
    exchange_rounds(rank, rank.communicator, random_rounds(1, ranks()));
  });
  return message;
}

void expect_part(const std::string& message, const std::string& part) {
  EXPECT_NE(message.find(part), std::string::npos) << "'" << part << "' in: " << message;
}

TEST(MpiGroupFailures, MessagesThatDifferAreBothNamed) {
  for (const StreamId stream : kTwoStreams) {
    const std::string message = message_of_groups([&](RankHandle rank) {
      const auto group = rank.communicator.split(me() == 0 ? 1 : 0, 0);
      if (me() == 0) return;
      const DeviceArray fine(rank.device, one_integer(1));
      const DeviceArray bad(rank.device, Array(DType::f32, me() == 1 ? 4 : 5));
      if (me() > 2) return;
      const bool sends = me() == 1;
      const int peer = me() == 1 ? 1 : 0;
      const Message messages[] = {{peer, sends, fine.view()}, {peer, sends, bad.view()}};
      group->exchange(stream, messages, nullptr);
      synchronize(rank);
    });
    expect_part(message,
                std::string("message mismatch at #2 from rank 1 to rank 2 on the stream '") +
                    name_of(stream) + "': rank 1 sends fp32 [4], rank 2 receives fp32 [5]");
  }
}

TEST(MpiGroupFailures, OfOneRankReleaseTheOthersInEveryGroup) {
  for (const StreamId stream : kTwoStreams) {
    const std::string message = message_of_groups([&](RankHandle rank) {
      const int last = ranks() - 1;
      const auto rest = rank.communicator.split(me() == last ? 1 : 0, 0);
      const DeviceArray a(rank.device, one_integer(1));
      if (me() == last) throw Error(ErrorCode::failed, "the disk is full");
      if (me() == 0) receive_one(rank.communicator, stream, last, a.view());
      if (me() == 1) receive_one(*rest, stream, 0, a.view());
      if (me() == 2) add_up(*rest, stream, a);
      synchronize(rank);
      ADD_FAILURE() << me();
    });
    EXPECT_EQ(message, "rank " + std::to_string(ranks() - 1) + ": the disk is full");
  }
}

TEST(MpiGroupFailures, AnUnmatchedReceiveIsNamedInTime) {
  const std::string message = message_of_groups(
      [](RankHandle rank) {
        const auto group = rank.communicator.split(0, -me());
        const DeviceArray a(rank.device, Array(DType::f32, 4));
        if (me() == 1) receive_one(*group, StreamId::communication, ranks() - 1, a.view());
        synchronize(rank);
        // The others are there, and do not send.
        if (me() != 1) receive_one(rank.communicator, StreamId::compute, 1, a.view());
      },
      std::chrono::milliseconds(300));
  expect_part(message, "message timed out after 300 ms: rank ");
  expect_part(message, "to receive fp32 [4] from rank ");
}

TEST(MpiGroupFailures, ARankThatHasEndedIsNotWaitedFor) {
  const std::string message = message_of_groups([](RankHandle rank) {
    const DeviceArray a(rank.device, one_integer(1));
    if (me() == 1) receive_one(rank.communicator, StreamId::compute, 0, a.view());
  });
  expect_part(message,
              "rank 1 waits to receive int32 [1] from rank 0, but rank 0 has left: its "
              "program has ended");
}

}  // namespace
}  // namespace zl::mpi
