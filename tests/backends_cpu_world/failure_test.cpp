// What a rank's mistake or end does to the others: an error that names it, and nobody hangs.
#include <gtest/gtest.h>

#include <unistd.h>

#include <array>
#include <atomic>
#include <stdexcept>

#include "tests/backends_cpu_world/ranks.h"

namespace zl::cpu::test {
namespace {

using namespace std::chrono_literals;

// Long enough never to matter in a test that expects another error.
constexpr auto kLong = 600s;

// What runs out in a test of time-outs: longer than any rank of a loaded machine takes to its next
// call.
constexpr auto kShort = 1000ms;

std::unique_ptr<World> make_test_world(int ranks, std::chrono::milliseconds timeout = kLong) {
  return make_world({.ranks = ranks, .threads_per_rank = 1, .collective_timeout = timeout});
}

void expect_parts(const std::string& message, const std::vector<std::string>& parts) {
  for (const std::string& part : parts) {
    EXPECT_NE(message.find(part), std::string::npos) << "'" << part << "' in: " << message;
  }
}

void all_reduce(RankHandle rank, Array& array, StreamId stream = StreamId::compute,
                ReduceOp op = ReduceOp::sum, Purpose purpose = Purpose::data) {
  const Segment segment{array.view(), array.view()};
  rank.communicator.run(stream, {CollectiveKind::all_reduce, op, purpose, {&segment, 1}}, nullptr);
}

class MismatchTest : public testing::TestWithParam<StreamId> {};

TEST_P(MismatchTest, EveryRankHearsBothCalls) {
  const auto world = make_test_world(3);
  std::atomic<int> told{0};
  const std::string message = error_of(*world, [&](RankHandle rank) {
    Array fine(DType::f32, 4), chunk(DType::f32, 2), full(DType::f32, 6);
    all_reduce(rank, fine, GetParam());
    const bool odd = rank.communicator.rank() == 2;
    const Segment gather{chunk.view(), full.view()}, scatter{full.view(), chunk.view()};
    const auto kind = odd ? CollectiveKind::reduce_scatter : CollectiveKind::all_gather;
    try {
      rank.communicator.run(
          GetParam(), {kind, ReduceOp::sum, Purpose::data, {odd ? &scatter : &gather, 1}}, nullptr);
      rank.device.synchronize(GetParam());
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::failed);
      expect_parts(error.what(), {"mismatch at #2", "rank 0 calls all_gather of 1 tensor fp32 [2]",
                                  "rank 2 calls reduce_scatter (sum) of 1 tensor fp32 [6]"});
      ++told;
      throw;
    }
  });
  EXPECT_EQ(told, 3);
  expect_parts(message, {"mismatch"});
}

INSTANTIATE_TEST_SUITE_P(Streams, MismatchTest,
                         testing::Values(StreamId::compute, StreamId::communication));

TEST(Mismatch, CountTypeOpGroupAndTensorsAllMatter) {
  const auto differs = [](const std::function<void(RankHandle, bool)>& program) {
    const auto world = make_test_world(2);
    return error_of(*world, [&](RankHandle rank) { program(rank, rank.communicator.rank() == 1); });
  };
  expect_parts(differs([](RankHandle rank, bool odd) {
                 Array array(DType::f32, odd ? 5 : 4);
                 all_reduce(rank, array);
               }),
               {"fp32 [4]", "fp32 [5]"});
  expect_parts(differs([](RankHandle rank, bool odd) {
                 Array array(odd ? DType::bf16 : DType::f16, 4);
                 all_reduce(rank, array);
               }),
               {"fp16 [4]", "bf16 [4]"});
  expect_parts(differs([](RankHandle rank, bool odd) {
                 Array array(DType::f32, 4);
                 all_reduce(rank, array, StreamId::compute, odd ? ReduceOp::max : ReduceOp::sum);
               }),
               {"(sum)", "(max)"});
  expect_parts(differs([](RankHandle rank, bool odd) {
                 Array array(DType::f32, 4);
                 all_reduce(rank, array, StreamId::compute, ReduceOp::sum,
                            odd ? Purpose::control : Purpose::data);
               }),
               {"group data", "group control"});
  expect_parts(differs([](RankHandle rank, bool odd) {
                 Array array(DType::f32, 4);
                 const std::vector<Segment> segments(odd ? 2 : 1, {array.view(), array.view()});
                 rank.communicator.run(
                     StreamId::compute,
                     {CollectiveKind::all_reduce, ReduceOp::sum, Purpose::data, segments}, nullptr);
               }),
               {"1 tensor fp32 [4]", "2 tensors fp32 [4, 4]"});
}

TEST(BadCall, IsRefusedBeforeAnyoneWaits) {
  const auto world = make_test_world(2);
  const auto error = [&](DType from, std::int64_t source, DType to, std::int64_t destination,
                         CollectiveKind kind, ReduceOp op) {
    return error_of(*world, [&](RankHandle rank) {
      Array a(from, source), b(to, destination);
      const Segment segment{a.view(), b.view()};
      rank.communicator.run(StreamId::compute, {kind, op, Purpose::data, {&segment, 1}}, nullptr);
    });
  };
  using enum CollectiveKind;
  expect_parts(error(DType::f32, 5, DType::f32, 2, reduce_scatter, ReduceOp::sum),
               {"reduce_scatter", "counts"});
  expect_parts(error(DType::f32, 2, DType::f32, 2, all_gather, ReduceOp::sum),
               {"all_gather", "counts"});
  expect_parts(error(DType::f32, 2, DType::bf16, 2, all_reduce, ReduceOp::sum),
               {"all_reduce", "one type"});
  expect_parts(error(DType::i32, 2, DType::i32, 2, all_reduce, ReduceOp::average), {"int32"});
  expect_parts(error(DType::u8, 2, DType::u8, 2, all_reduce, ReduceOp::sum), {"can be reduced"});
}

class LeavingTest : public testing::TestWithParam<StreamId> {};

TEST_P(LeavingTest, WaitingRanksNameTheRankThatEnded) {
  const auto world = make_test_world(3);
  const std::string message = error_of(*world, [&](RankHandle rank) {
    Array array(DType::f32, 4);
    if (rank.communicator.rank() == 1) return;
    all_reduce(rank, array, GetParam());
    rank.device.synchronize(GetParam());
  });
  expect_parts(message, {"all_reduce (sum) of 1 tensor fp32 [4]", "rank 1 has left", "ended"});
}

TEST_P(LeavingTest, TheFirstRealErrorIsRethrown) {
  const auto world = make_test_world(4);
  std::atomic<int> told{0};
  EXPECT_THROW(world->run([&](RankHandle rank) {
    Array array(DType::f32, 4);
    if (rank.communicator.rank() == 3) throw std::out_of_range("the cause");
    try {
      all_reduce(rank, array, GetParam());
      rank.device.synchronize(GetParam());
    } catch (const Error& error) {
      expect_parts(error.what(), {"rank 3 has left", "the cause"});
      ++told;
      throw;
    }
  }),
               std::out_of_range);
  EXPECT_EQ(told, 3);
}

INSTANTIATE_TEST_SUITE_P(Streams, LeavingTest,
                         testing::Values(StreamId::compute, StreamId::communication));

// Rank 1's worker waits in a collective that rank 0 will not reach, while rank 0 waits for rank 1:
// the unwinding of rank 1 has to free its memory without waiting for rank 0.
TEST(Leaving, UnwindingWithWorkUnderWayHangsNobody) {
  const auto world = make_test_world(2);
  EXPECT_THROW(world->run([&](RankHandle rank) {
    struct Slab {
      explicit Slab(Device& owner)
          : device(owner), data(owner.reserve(MemorySpace::device, 4096)) {}
      ~Slab() { device.release(MemorySpace::device, data, 4096); }
      Device& device;
      std::byte* data;
    };
    auto& device = dynamic_cast<Device&>(rank.device);
    Slab slab(device);
    const TensorView view{slab.data, DType::f32, Shape{4}};
    const Segment segment{view, view};
    const Collective collective{
        CollectiveKind::all_reduce, ReduceOp::sum, Purpose::data, {&segment, 1}};
    if (rank.communicator.rank() == 1) {
      rank.communicator.run(StreamId::communication, collective, nullptr);
      throw std::out_of_range("the cause");
    }
    rank.communicator.run(StreamId::compute, collective, nullptr);
  }),
               std::out_of_range);
}

TEST(Timeout, NamesWhoWaitsWhereAndWhoIsMissing) {
  const auto world = make_test_world(3, kShort);
  std::atomic<int> told{0};
  const std::string message = error_of(*world, [&](RankHandle rank) {
    Array array(DType::f32, 4);
    all_reduce(rank, array);
    if (rank.communicator.rank() == 2) {
      while (told < 2) std::this_thread::yield();
    }
    try {
      all_reduce(rank, array);
    } catch (const Error& error) {
      expect_parts(error.what(),
                   {"timed out after 1000 ms", "rank 0 waits at #2", "rank 1 waits at #2",
                    "'compute' in all_reduce", "not there: rank 2"});
      ++told;
    }
  });
  EXPECT_EQ(told, 3);
  EXPECT_EQ(message, "");
}

TEST(Timeout, CallsOnDifferentStreamsAreBothNamed) {
  const auto world = make_test_world(2, kShort);
  const std::string message = error_of(*world, [&](RankHandle rank) {
    Array array(DType::f32, 4);
    const bool odd = rank.communicator.rank() == 1;
    const StreamId stream = odd ? StreamId::communication : StreamId::compute;
    all_reduce(rank, array, stream);
    rank.device.synchronize(stream);
  });
  expect_parts(message, {"timed out", "rank 0 waits at #1 of the stream 'compute'"});
}

// What this process says on stderr, line by line while it goes on.
class StderrLines {
 public:
  StderrLines() : before_(dup(STDERR_FILENO)) {
    EXPECT_EQ(pipe(ends_.data()), 0);
    dup2(ends_[1], STDERR_FILENO);
  }
  ~StderrLines() {
    dup2(before_, STDERR_FILENO);
    for (const int end : {before_, ends_[0], ends_[1]}) close(end);
  }
  StderrLines(const StderrLines&) = delete;
  StderrLines& operator=(const StderrLines&) = delete;

  // Waits for it.
  std::string next() const {
    std::string line;
    for (char c = 0; c != '\n' && read(ends_[0], &c, 1) == 1;) line += c;
    return line;
  }

 private:
  int before_;
  std::array<int, 2> ends_{};
};

// As one in a file that does not answer until that was said.
TEST(Timeout, ARankThatGoesOnAfterAFailureIsNamed) {
  const auto world = make_test_world(2, kShort);
  const StderrLines lines;
  std::string line;
  const std::string message = error_of(*world, [&](RankHandle rank) {
    Array array(DType::f32, 4);
    if (rank.communicator.rank() == 0) return all_reduce(rank, array);
    rank.device.run_host(
        StreamId::file_in, [&] { line = lines.next(); }, nullptr);
    rank.device.synchronize(StreamId::file_in);
  });
  expect_parts(message, {"timed out after 1000 ms", "not there: rank 1"});
  // Rank 0 may not have ended yet either.
  expect_parts(line, {"warning: another rank has failed, and rank", "1 ha", "ended for 1000 ms"});
}

TEST(World, WorksAgainAfterAFailure) {
  const auto world = make_test_world(4);
  for (int round = 0; round < 20; ++round) {
    EXPECT_THROW(world->run([&](RankHandle rank) {
      Array array(DType::f32, 4);
      if (rank.communicator.rank() == round % 4) throw std::runtime_error("round");
      all_reduce(rank, array, StreamId::communication);
      all_reduce(rank, array);
    }),
                 std::runtime_error);
    world->run([&](RankHandle rank) {
      Array array(DType::f32, 1);
      array.set(0, 1);
      all_reduce(rank, array, StreamId::communication);
      rank.device.synchronize(StreamId::communication);
      EXPECT_EQ(array.get(0), 4);
    });
  }
}

TEST(World, TakesOneToSixtyFourRanks) {
  for (const int ranks : {0, -1, 65}) {
    try {
      make_world({.ranks = ranks});
      FAIL() << ranks;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::invalid);
      expect_parts(error.what(), {std::to_string(ranks), "between 1 and 64"});
    }
  }
  run_ranks(64, [](RankHandle rank) {
    Array array(DType::i32, 1);
    array.set(0, 1);
    all_reduce(rank, array);
    EXPECT_EQ(array.get(0), 64);
    EXPECT_EQ(rank.communicator.size(), 64);
    EXPECT_EQ(rank.communicator.link(), "threads");
  });
}

}  // namespace
}  // namespace zl::cpu::test
