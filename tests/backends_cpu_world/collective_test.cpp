// Every collective against a serial reference, bit for bit.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <thread>
#include <tuple>

#include "tests/backends_cpu_world/ranks.h"

namespace zl::cpu::test {
namespace {

class CollectiveTest : public testing::TestWithParam<std::tuple<int, StreamId>> {
 protected:
  int ranks() const { return std::get<0>(GetParam()); }

  void run(RankHandle rank, CollectiveKind kind, ReduceOp op,
           const std::vector<Segment>& segments) const {
    const StreamId stream = std::get<1>(GetParam());
    Timing timing;
    rank.communicator.run(stream, {kind, op, Purpose::data, segments}, &timing);
    rank.device.synchronize(stream);
    EXPECT_GT(timing.start_ns, 0);
    EXPECT_GE(timing.end_ns, std::max(timing.start_ns, timing.met_ns));
  }

  using Inputs = std::vector<std::vector<Array>>;
  void scatter_and_gather(const Inputs& all, ReduceOp op, const std::vector<Array>& expected,
                          bool in_place) const;
};

TEST_P(CollectiveTest, AllReduce) {
  for (const DType dtype : kTypes) {
    const auto all = all_inputs(dtype, ranks(), 1);
    for (const ReduceOp op : ops_of(dtype)) {
      const std::vector<Array> expected = all_reduced(all, op);
      run_ranks(ranks(), [&](RankHandle rank) {
        std::vector<Array> arrays = all[static_cast<std::size_t>(rank.communicator.rank())];
        std::vector<Segment> segments;
        for (Array& array : arrays) segments.push_back({array.view(), array.view()});
        run(rank, CollectiveKind::all_reduce, op, segments);
        EXPECT_EQ(arrays, expected) << name_of(dtype);
      });
    }
  }
}

// Each half against the reference; the second ends with what all_reduce gives, bit for bit.
void CollectiveTest::scatter_and_gather(const Inputs& all, ReduceOp op,
                                        const std::vector<Array>& expected, bool in_place) const {
  run_ranks(ranks(), [&](RankHandle rank) {
    const int me = rank.communicator.rank();
    std::vector<Array> full = all[static_cast<std::size_t>(me)], chunks;
    const DType dtype = full[0].dtype;
    std::vector<Segment> scatter, gather;
    chunks.reserve(kCounts.size());
    for (std::size_t i = 0; i < kCounts.size(); ++i) {
      Array& chunk = chunks.emplace_back(dtype, kCounts[i]);
      const TensorView own = in_place ? full[i].part(me * kCounts[i], kCounts[i]) : chunk.view();
      scatter.push_back({full[i].view(), own});
      gather.push_back({own, full[i].view()});
    }
    run(rank, CollectiveKind::reduce_scatter, op, scatter);
    for (std::size_t i = 0; i < kCounts.size(); ++i) {
      for (std::int64_t j = 0; j < kCounts[i]; ++j) {
        const std::int64_t at = me * kCounts[i] + j;
        ASSERT_EQ(in_place ? full[i].get(at) : chunks[i].get(j), expected[i].get(at));
      }
    }
    run(rank, CollectiveKind::all_gather, op, gather);
    EXPECT_EQ(full, expected) << name_of(dtype);
  });
}

TEST_P(CollectiveTest, ReduceScatterThenAllGatherEqualsAllReduce) {
  for (const DType dtype : kTypes) {
    const Inputs all = all_inputs(dtype, ranks(), ranks());
    for (const ReduceOp op : ops_of(dtype)) {
      const std::vector<Array> expected = all_reduced(all, op);
      scatter_and_gather(all, op, expected, false);
      scatter_and_gather(all, op, expected, true);
    }
  }
}

TEST_P(CollectiveTest, Broadcast) {
  for (const DType dtype : kTypes) {
    const std::vector<Array> expected = inputs(dtype, 0, 1);
    for (const bool in_place : {false, true}) {
      run_ranks(ranks(), [&](RankHandle rank) {
        std::vector<Array> sources = inputs(dtype, rank.communicator.rank(), 1);
        std::vector<Array> results = sources;
        std::vector<Segment> segments;
        for (std::size_t i = 0; i < sources.size(); ++i) {
          Array& result = in_place ? sources[i] : results[i];
          segments.push_back({sources[i].view(), result.view()});
        }
        run(rank, CollectiveKind::broadcast, ReduceOp::sum, segments);
        EXPECT_EQ(in_place ? sources : results, expected) << name_of(dtype);
      });
    }
  }
}

// Chunk j of rank i becomes chunk i of rank j; bytes as well as numbers.
TEST_P(CollectiveTest, AllToAll) {
  for (const DType dtype : {DType::f64, DType::f32, DType::bf16, DType::i32, DType::u8}) {
    const Inputs all = all_inputs(dtype, ranks(), ranks());
    run_ranks(ranks(), [&](RankHandle rank) {
      const int me = rank.communicator.rank();
      std::vector<Array> sources = all[static_cast<std::size_t>(me)], results;
      std::vector<Segment> segments;
      for (const Array& source : sources) results.emplace_back(dtype, source.count);
      for (std::size_t i = 0; i < kCounts.size(); ++i) {
        segments.push_back({sources[i].view(), results[i].view()});
      }
      run(rank, CollectiveKind::all_to_all, ReduceOp::sum, segments);
      for (int from = 0; from < ranks(); ++from) {
        for (std::size_t i = 0; i < kCounts.size(); ++i) {
          const Array& theirs = all[static_cast<std::size_t>(from)][i];
          for (std::int64_t j = 0; j < kCounts[i]; ++j) {
            ASSERT_EQ(results[i].get(from * kCounts[i] + j), theirs.get(me * kCounts[i] + j));
          }
        }
      }
    });
  }
}

TEST(CollectiveChecks, AllToAllNeedsEqualChunks) {
  const auto world = make_world({.ranks = 3, .threads_per_rank = 1});
  const std::string error = error_of(*world, [&](RankHandle rank) {
    Array four(DType::u8, 4), into(DType::u8, 4);
    const Segment segment{four.view(), into.view()};
    rank.communicator.run(StreamId::compute,
                          {CollectiveKind::all_to_all, ReduceOp::sum, Purpose::data, {&segment, 1}},
                          nullptr);
  });
  EXPECT_NE(error.find("all_to_all: the source is one chunk"), std::string::npos) << error;
}

TEST(WireBytes, AllToAllSendsAllButItsOwnChunk) {
  const Segment segment{{nullptr, DType::u8, Shape{40}}, {nullptr, DType::u8, Shape{40}}};
  EXPECT_EQ(wire_bytes(CollectiveKind::all_to_all, segment, 4), 30);
  EXPECT_EQ(wire_bytes(CollectiveKind::all_to_all, segment, 1), 0);
}

TEST(Collectives, ARankTellsWhenAllHadCome) {
  std::array<Timing, 3> times;
  run_ranks(3, [&](RankHandle rank) {
    const auto me = static_cast<std::size_t>(rank.communicator.rank());
    if (me == 1) std::this_thread::sleep_for(std::chrono::milliseconds(20));
    Array array = input(DType::f32, 8, rank.communicator.rank(), 0);
    const Segment segment{array.view(), array.view()};
    rank.communicator.run(StreamId::compute,
                          {CollectiveKind::all_reduce, ReduceOp::sum, Purpose::data, {&segment, 1}},
                          &times[me]);
  });
  for (const Timing& each : times) {
    EXPECT_GE(each.met_ns, times[1].start_ns);
    EXPECT_GE(each.end_ns, each.met_ns);
  }
}

// A slow link: a collective lasts at least its wire bytes over the bandwidth, and moves the same.
TEST(SlowLink, HoldsACollectiveForItsTransferTime) {
  make_ranks({.ranks = 3, .threads_per_rank = 1, .link_bandwidth = 1e6})->run([](RankHandle rank) {
    const int me = rank.communicator.rank();
    Array whole = input(DType::f32, 3000, me, 0);
    const Segment segment{whole.part(1000 * me, 1000), whole.view()};
    Timing timing;
    rank.communicator.run(StreamId::communication,
                          {CollectiveKind::all_gather, ReduceOp::sum, Purpose::data, {&segment, 1}},
                          &timing);
    rank.device.synchronize(StreamId::communication);
    EXPECT_GE(timing.end_ns - timing.start_ns, 8'000'000);  // 2 * 1000 elements of 4 bytes
    for (int from = 0; from < 3; ++from) {
      const Array theirs = input(DType::f32, 3000, from, 0);
      for (std::int64_t i = from * 1000; i < from * 1000 + 1000; ++i) {
        ASSERT_EQ(whole.get(i), theirs.get(i));
      }
    }
  });
}

INSTANTIATE_TEST_SUITE_P(Worlds, CollectiveTest,
                         testing::Combine(testing::Range(1, 9),
                                          testing::Values(StreamId::compute,
                                                          StreamId::communication)),
                         [](const auto& test) {
                           return std::to_string(std::get<0>(test.param)) +
                                  (std::get<1>(test.param) == StreamId::compute ? "_compute"
                                                                                : "_communication");
                         });

TEST(ReductionTest, NotANumberWinsTheMaximumWhicheverRankHasIt) {
  for (int bad = 0; bad < 3; ++bad) {
    run_ranks(3, [&](RankHandle rank) {
      Array value(DType::f32, 1);
      value.set(0, rank.communicator.rank() == bad ? NAN : 1.0);
      const Segment segment{value.view(), value.view()};
      rank.communicator.run(
          StreamId::compute,
          {CollectiveKind::all_reduce, ReduceOp::max, Purpose::control, {&segment, 1}}, nullptr);
      EXPECT_TRUE(std::isnan(value.get(0)));
    });
  }
}

TEST(ReductionTest, SumsInRankOrderAndRoundsOnce) {
  // In f32 (2^24 + 1) + 1 stays 2^24, in another order or in f64 it would be 2^24 + 2.
  run_ranks(3, [&](RankHandle rank) {
    Array value(DType::f32, 1);
    value.set(0, rank.communicator.rank() == 0 ? 16777216.0 : 1.0);
    const Segment segment{value.view(), value.view()};
    rank.communicator.run(StreamId::compute,
                          {CollectiveKind::all_reduce, ReduceOp::sum, Purpose::data, {&segment, 1}},
                          nullptr);
    EXPECT_EQ(value.get(0), 16777216.0);
  });
  // bf16: 256 + 1 + 1 is 258, representable; rounding after each addition would give 256.
  run_ranks(3, [&](RankHandle rank) {
    Array value(DType::bf16, 1);
    value.set(0, rank.communicator.rank() == 0 ? 256.0 : 1.0);
    const Segment segment{value.view(), value.view()};
    rank.communicator.run(StreamId::compute,
                          {CollectiveKind::all_reduce, ReduceOp::sum, Purpose::data, {&segment, 1}},
                          nullptr);
    EXPECT_EQ(value.get(0), 258.0);
  });
}

TEST(CollectiveStreams, TwoStreamsOfEachRankCarryCollectivesAtOnce) {
  constexpr int kRanks = 4, kRounds = 200;
  run_ranks(kRanks, [&](RankHandle rank) {
    const int me = rank.communicator.rank();
    std::vector<Array> background(kRounds, Array(DType::f32, 3));
    for (int round = 0; round < kRounds; ++round) {
      Array& later = background[static_cast<std::size_t>(round)];
      for (int i = 0; i < 3; ++i) later.set(i, me + round);
      const Segment slow{later.view(), later.view()};
      rank.communicator.run(StreamId::communication,
                            {CollectiveKind::all_reduce, ReduceOp::sum, Purpose::data, {&slow, 1}},
                            nullptr);
      Array now(DType::f64, 1);
      now.set(0, me * round);
      const Segment quick{now.view(), now.view()};
      rank.communicator.run(StreamId::compute,
                            {CollectiveKind::all_reduce, ReduceOp::max, Purpose::data, {&quick, 1}},
                            nullptr);
      ASSERT_EQ(now.get(0), (kRanks - 1) * round);
    }
    rank.device.synchronize(StreamId::communication);
    for (int round = 0; round < kRounds; ++round) {
      ASSERT_EQ(background[static_cast<std::size_t>(round)].get(2), 6 + 4 * round);
    }
  });
}

}  // namespace
}  // namespace zl::cpu::test
