// What a rank's mistake or end does to ranks that wait in messages and in groups: an error that
// names it, and nobody hangs.
#include <gtest/gtest.h>

#include <atomic>
#include <stdexcept>

#include "core/threads/failures.h"
#include "tests/backends_cpu_world/group_programs.h"

namespace zl::cpu::test {
namespace {

using namespace std::chrono_literals;

constexpr auto kLong = 600s;     // never to matter in a test that expects another error
constexpr auto kShort = 1000ms;  // longer than any rank of a loaded machine takes to its next call

std::unique_ptr<World> make_test_world(int ranks, std::chrono::milliseconds timeout = kLong) {
  return make_world({.ranks = ranks, .threads_per_rank = 1, .collective_timeout = timeout});
}

void expect_parts(const std::string& message, const std::vector<std::string>& parts) {
  for (const std::string& part : parts) {
    EXPECT_NE(message.find(part), std::string::npos) << "'" << part << "' in: " << message;
  }
}

// What each rank's program throws.
class Errors {
 public:
  explicit Errors(int ranks) : texts_(static_cast<std::size_t>(ranks)) {}

  // Runs it on the world and returns what that throws.
  std::string run(World& world, const std::function<void(RankHandle)>& program) {
    return error_of(world, [&](RankHandle rank) {
      try {
        program(rank);
        synchronize(rank);
      } catch (const std::exception& error) {
        texts_[static_cast<std::size_t>(rank.communicator.rank())] = error.what();
        throw;
      }
    });
  }
  const std::string& of(std::size_t rank) const { return texts_[rank]; }

 private:
  std::vector<std::string> texts_;
};

class GroupFailureTest : public testing::TestWithParam<StreamId> {};

TEST_P(GroupFailureTest, BothSidesHearOfMessagesThatDiffer) {
  struct Side {
    DType dtype;
    std::int64_t count;
    std::string text;
  };
  const Side sides[][2] = {{{DType::f32, 4, "fp32 [4]"}, {DType::f32, 5, "fp32 [5]"}},
                           {{DType::f32, 4, "fp32 [4]"}, {DType::i32, 4, "int32 [4]"}}};
  for (const auto& [sent, received] : sides) {
    const auto world = make_test_world(3);
    Errors errors(3);
    errors.run(*world, [&, &sent = sent, &received = received](RankHandle rank) {
      const int me = rank.communicator.rank();
      const DeviceArray fine(rank.device, one_integer(1));
      const Side& mine = me == 1 ? received : sent;
      const DeviceArray bad(rank.device, Array(mine.dtype, mine.count));
      if (me == 0) return;
      const Message messages[] = {{3 - me, me == 2, fine.view()}, {3 - me, me == 2, bad.view()}};
      rank.communicator.exchange(GetParam(), messages, nullptr);
    });
    EXPECT_EQ(errors.of(0), "");
    for (const std::size_t rank : {1U, 2U}) {
      EXPECT_EQ(errors.of(rank), std::string("message mismatch at #2 from rank 2 to rank 1 on the "
                                             "stream '") +
                                     name_of(GetParam()) + "': rank 2 sends " + sent.text +
                                     ", rank 1 receives " + received.text);
    }
  }
}

// Every rank but the last waits: in a message of the world, in one of a split group, and in a
// split group's collective.
TEST_P(GroupFailureTest, ARankThatThrowsReleasesTheOthersInEveryGroup) {
  const auto world = make_test_world(6);
  for (int round = 0; round < 5; ++round) {
    std::atomic<int> told{0};
    EXPECT_THROW(world->run([&](RankHandle rank) {
      const int me = rank.communicator.rank();
      const auto pair = rank.communicator.split(me / 2, 0);
      const auto nested = pair->split(0, -me);
      rank.communicator.split(0, me);  // nobody leaves before all groups are there
      const DeviceArray a(rank.device, one_integer(1));
      try {
        if (me == 5) throw std::domain_error("no disk");
        if (me == 0) receive_one(rank.communicator, GetParam(), 1, a.view());
        if (me == 1) send_one(rank.communicator, GetParam(), 3, a.view());
        if (me == 2) receive_one(*pair, GetParam(), 1, a.view());
        if (me == 3) send_one(rank.communicator, GetParam(), 4, a.view());
        if (me == 4) add_up(*nested, GetParam(), a);
        synchronize(rank);
        ADD_FAILURE() << me;
      } catch (const Error& error) {
        expect_parts(error.what(),
                     {"rank " + std::to_string(me) + " waits ", "rank 5 has left: no disk"});
        ++told;
        throw;
      }
    }),
                 std::domain_error);
    EXPECT_EQ(told, 5);
  }
}

TEST_P(GroupFailureTest, AnUnmatchedReceiveIsNamedWhenTimeIsUp) {
  const auto world = make_test_world(4, kShort);
  Errors errors(4);
  errors.run(*world, [&](RankHandle rank) {
    const int me = rank.communicator.rank();
    const auto pair = rank.communicator.split(me / 2, 0);
    const DeviceArray a(rank.device, Array(DType::f32, 4));
    if (me == 0) {
      receive_one(*pair, GetParam(), 1, a.view());
      receive_one(*pair, GetParam(), 1, a.view());
    } else if (me == 1) {
      send_one(*pair, GetParam(), 0, a.view());
      add_up(rank.communicator, GetParam(), a);
    } else {
      add_up(rank.communicator, GetParam(), a);
    }
  });
  for (const std::size_t rank : {0U, 1U, 2U, 3U}) {
    const std::string stream = std::string(" of the stream '") + name_of(GetParam()) + "' ";
    expect_parts(
        errors.of(rank),
        {"timed out after 1000 ms",
         "rank 0 waits at #2" + stream + "to receive fp32 [4] from rank 1", "rank 1 waits at #"});
  }
}

// Receive before send on both sides, each call by itself: a deadlock.
TEST(GroupDeadlock, SaysWhoWaitsForWhat) {
  const auto world = make_test_world(2, kShort);
  Errors errors(2);
  errors.run(*world, [&](RankHandle rank) {
    const int peer = 1 - rank.communicator.rank();
    const DeviceArray a(rank.device, Array(DType::f32, 4)), b(rank.device, Array(DType::f32, 4));
    const Message first{peer, false, a.view(), {.phase = Phase::backward, .unit = 3, .step = 17}};
    rank.communicator.exchange(StreamId::communication, {&first, 1}, nullptr);
    send_one(rank.communicator, StreamId::communication, peer, b.view());
  });
  for (const std::size_t rank : {0U, 1U}) {
    expect_parts(errors.of(rank),
                 {"message timed out after 1000 ms: rank 1 waits at #1 of the stream "
                  "'communication' to receive fp32 [4] from rank 0, backward of unit 3, step 17 of "
                  "this run; rank 0 waits at #1 of the stream 'communication' to receive fp32 [4] "
                  "from rank 1, backward of unit 3"});
  }
}

TEST_P(GroupFailureTest, ARankThatHasEndedIsNamedByThoseWhoNeedIt) {
  const auto world = make_test_world(4);
  Errors errors(4);
  errors.run(*world, [&](RankHandle rank) {
    const int me = rank.communicator.rank();
    const auto pair = rank.communicator.split(me / 2, 0);
    const DeviceArray a(rank.device, one_integer(1));
    if (me == 1) add_up(*pair, GetParam(), a);
  });
  EXPECT_EQ(errors.of(0), "");
  expect_parts(errors.of(1),
               {"rank 1 waits in all_reduce", "rank 0 has left: its program has ended"});
}

// Told when the thread that made it ends: a rank's, when its world knows that its program has.
struct ThreadEnd {
  std::atomic<bool>& ended;
  ~ThreadEnd() {
    ended = true;
    ended.notify_all();
  }
};

// The first rank's program ends while the others still talk, in a group with it and in one without.
TEST_P(GroupFailureTest, ARankThatHasEndedDoesNotEndWhatDoesNotNeedIt) {
  const auto world = make_test_world(3);
  std::atomic<bool> ended = false;
  world->run([&](RankHandle rank) {
    const int me = rank.communicator.rank();
    const auto rest = rank.communicator.split(me == 0 ? 0 : 1, 0);
    if (me == 0) {
      thread_local const ThreadEnd end{ended};
      return;
    }
    const DeviceArray a(rank.device, one_integer(me)), b(rank.device, one_integer(1));
    for (int round = 0; round < 200; ++round) {
      if (round == 100) ended.wait(false);
      const Message both[] = {{3 - me, true, a.view()}, {3 - me, false, b.view()}};
      rank.communicator.exchange(GetParam(), both, nullptr);
      const DeviceArray sum(rank.device, one_integer(me));
      add_up(*rest, GetParam(), sum);
      synchronize(rank);
      ASSERT_EQ(b.get().get(0), 3 - me);
      ASSERT_EQ(sum.get().get(0), 3);
    }
  });
}

INSTANTIATE_TEST_SUITE_P(Streams, GroupFailureTest,
                         testing::Values(StreamId::compute, StreamId::communication),
                         [](const auto& test) { return std::string(name_of(test.param)); });

TEST(GroupFailure, ASplitThatNotAllJoinIsNamed) {
  const auto world = make_test_world(2, kShort);
  Errors errors(2);
  errors.run(*world, [&](RankHandle rank) {
    const DeviceArray a(rank.device, one_integer(1));
    if (rank.communicator.rank() == 0) {
      rank.communicator.split(0, 0);
    } else {
      add_up(rank.communicator, StreamId::compute, a);
    }
  });
  expect_parts(errors.of(0), {"mismatch at #1", "rank 0 calls split", "rank 1 calls all_reduce"});
  EXPECT_EQ(errors.of(0), errors.of(1));
}

// A group's communicator goes while its rank's work waits in it: nobody touches what is gone.
TEST(GroupFailure, AGroupMayGoWhileItsWorkIsUnderWay) {
  const auto world = make_test_world(2);
  EXPECT_THROW(world->run([&](RankHandle rank) {
    const DeviceArray a(rank.device, one_integer(1));
    {
      const auto group = rank.communicator.split(0, 0);
      if (rank.communicator.rank() == 1) throw std::domain_error("no disk");
      receive_one(*group, StreamId::communication, 1, a.view());
    }
    rank.device.synchronize(StreamId::communication);
  }),
               std::domain_error);
  world->run([&](RankHandle rank) {
    const DeviceArray a(rank.device, one_integer(1)), b(rank.device, one_integer(1));
    {
      const auto group = rank.communicator.split(0, 0);
      add_up(*group, StreamId::communication, a);
    }
    add_up(rank.communicator, StreamId::compute, b);
    synchronize(rank);
    EXPECT_EQ(a.get().get(0), 2);
  });
}

}  // namespace
}  // namespace zl::cpu::test
