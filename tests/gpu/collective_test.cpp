// Collectives on the GPU against the serial reference of tests/backends_cpu_world: ranks that share
// GPU 0 bit for bit, NCCL with one rank bit for bit and with a rank per GPU up to rounding.
#include <gtest/gtest.h>

#include <algorithm>
#include <thread>

#include "backends/cuda/nccl_communicator.h"
#include "backends/cuda/same_gpu_communicator.h"
#include "tests/backends_cpu_world/ranks.h"

namespace zl::gpu {
namespace {

using namespace cpu::test;  // what the CPU's collectives are tested with
using std::chrono::milliseconds;

struct Kind {
  std::string name;
  std::unique_ptr<cuda::RankGroup> (*make)(int ranks, milliseconds timeout);
  int ranks;
  bool one_gpu;  // ranks share GPU 0, else rank r has GPU r
  bool exact;    // sums in rank order
};

void PrintTo(const Kind& kind, std::ostream* out) { *out << kind.name; }

// Runs `program` on every rank's thread and returns the first error of each.
std::vector<std::string> run_group(const Kind& kind,
                                   const std::function<void(RankHandle)>& program) {
  const auto group = kind.make(kind.ranks, milliseconds(20000));
  std::vector<std::string> errors(static_cast<std::size_t>(kind.ranks));
  std::vector<std::thread> threads;
  for (int rank = 0; rank < kind.ranks; ++rank) {
    threads.emplace_back([&, rank] {
      try {
        cuda::Device device(kind.one_gpu ? 0 : rank, rank,
                            [&, rank](const std::string& why) { group->leave(rank, why); });
        const auto communicator = group->join(device, rank);
        program({device, *communicator});
      } catch (const std::exception& error) {
        errors[static_cast<std::size_t>(rank)] = error.what();
        group->leave(rank, error.what());
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  return errors;
}

void run_well(const Kind& kind, const std::function<void(RankHandle)>& program) {
  for (const std::string& error : run_group(kind, program)) EXPECT_EQ(error, "");
}

// A copy of host tensors on the GPU, with guards between them.
class OnDevice {
 public:
  OnDevice(Device& device, const std::vector<Array>& host) : device_(device) {
    for (const Array& array : host) {
      offsets_.push_back(bytes_ + kGuard);
      bytes_ += (static_cast<std::int64_t>(array.bytes.size()) + 2 * kGuard + 511) / 512 * 512;
    }
    image_.assign(static_cast<std::size_t>(bytes_), kPoison);
    for (std::size_t i = 0; i < host.size(); ++i) {
      std::copy(host[i].bytes.begin(), host[i].bytes.end(), image_.begin() + offsets_[i]);
    }
    slab_ = device.reserve(MemorySpace::device, bytes_);
    ZL_CHECK(slab_ != nullptr, "the GPU has room for the tensors of a collective");
    device.copy(StreamId::compute, slab_, image_.data(), bytes_, nullptr);
    device.synchronize(StreamId::compute);
  }
  ~OnDevice() { device_.release(MemorySpace::device, slab_, bytes_); }

  TensorView view(std::size_t i, const Array& like) const {
    return {slab_ + offsets_[i], like.dtype, Shape{like.count}};
  }
  // What the tensors hold now; fails the test when a byte between them has changed.
  std::vector<Array> read(const std::vector<Array>& like) {
    std::vector<std::byte> now(image_.size());
    device_.copy(StreamId::compute, now.data(), slab_, bytes_, nullptr);
    device_.synchronize(StreamId::compute);
    std::vector<Array> arrays = like;
    for (std::size_t i = 0; i < arrays.size(); ++i) {
      const auto begin = now.begin() + offsets_[i];
      std::copy_n(begin, arrays[i].bytes.size(), arrays[i].bytes.begin());
      std::fill_n(begin, arrays[i].bytes.size(), kPoison);
    }
    for (std::size_t i = 0; i < arrays.size(); ++i) {
      std::fill_n(image_.begin() + offsets_[i], arrays[i].bytes.size(), kPoison);
    }
    EXPECT_TRUE(now == image_) << "bytes between the tensors changed";
    return arrays;
  }

 private:
  static constexpr std::int64_t kGuard = 256;
  static constexpr std::byte kPoison{0xA5};
  Device& device_;
  std::vector<std::int64_t> offsets_;
  std::int64_t bytes_ = 0;
  std::vector<std::byte> image_;
  std::byte* slab_ = nullptr;
};

double unit_error(DType dtype) {
  if (dtype == DType::f64) return 1e-15;
  if (dtype == DType::f32) return 1e-6;
  return dtype == DType::bf16 ? 0x1p-7 : 0x1p-10;
}

void expect_equal(const Kind& kind, const std::vector<Array>& got, const std::vector<Array>& want) {
  if (kind.exact) {
    EXPECT_TRUE(got == want) << name_of(want[0].dtype);
    return;
  }
  for (std::size_t t = 0; t < want.size(); ++t) {
    for (std::int64_t i = 0; i < want[t].count; ++i) {
      ASSERT_NEAR(got[t].get(i), want[t].get(i), 2 * kind.ranks * unit_error(want[t].dtype))
          << name_of(want[t].dtype) << " element " << i << " of tensor " << t;
    }
  }
}

void run_collective(RankHandle rank, StreamId stream, CollectiveKind kind, ReduceOp op,
                    const std::vector<Segment>& segments) {
  Timing timing;
  rank.communicator.run(stream, {kind, op, Purpose::data, segments}, &timing);
  rank.device.synchronize(stream);
  EXPECT_GT(timing.start_ns, 0);
  EXPECT_GE(timing.end_ns, timing.start_ns);
}

std::vector<Segment> in_place(const OnDevice& memory, const std::vector<Array>& host) {
  std::vector<Segment> segments;
  for (std::size_t i = 0; i < host.size(); ++i) {
    segments.push_back({memory.view(i, host[i]), memory.view(i, host[i])});
  }
  return segments;
}

class Collectives : public testing::TestWithParam<Kind> {};

TEST_P(Collectives, AllReduce) {
  const Kind& kind = GetParam();
  for (const DType dtype : kTypes) {
    const auto all = all_inputs(dtype, kind.ranks, 1);
    for (const ReduceOp op : ops_of(dtype)) {
      const std::vector<Array> expected = all_reduced(all, op);
      run_well(kind, [&](RankHandle rank) {
        const std::vector<Array>& mine = all[static_cast<std::size_t>(rank.communicator.rank())];
        for (const StreamId stream : {StreamId::compute, StreamId::communication}) {
          OnDevice memory(rank.device, mine);
          run_collective(rank, stream, CollectiveKind::all_reduce, op, in_place(memory, mine));
          expect_equal(kind, memory.read(mine), expected);
        }
      });
    }
  }
}

// In place: a rank's chunk is its part of the whole tensor.
TEST_P(Collectives, ReduceScatterThenAllGatherEqualsAllReduce) {
  const Kind& kind = GetParam();
  for (const DType dtype : kTypes) {
    const auto all = all_inputs(dtype, kind.ranks, kind.ranks);
    for (const ReduceOp op : ops_of(dtype)) {
      const std::vector<Array> expected = all_reduced(all, op);
      run_well(kind, [&](RankHandle rank) {
        const int me = rank.communicator.rank();
        const std::vector<Array>& mine = all[static_cast<std::size_t>(me)];
        OnDevice memory(rank.device, mine);
        std::vector<Segment> scatter, gather;
        for (std::size_t i = 0; i < mine.size(); ++i) {
          const TensorView whole = memory.view(i, mine[i]);
          const TensorView own = whole.flat(me * kCounts[i], kCounts[i]);
          scatter.push_back({whole, own});
          gather.push_back({own, whole});
        }
        run_collective(rank, StreamId::communication, CollectiveKind::reduce_scatter, op, scatter);
        run_collective(rank, StreamId::communication, CollectiveKind::all_gather, op, gather);
        expect_equal(kind, memory.read(mine), expected);
      });
    }
  }
}

TEST_P(Collectives, BroadcastInPlace) {
  const Kind& kind = GetParam();
  for (const DType dtype : kTypes) {
    const std::vector<Array> expected = inputs(dtype, 0, 1);
    run_well(kind, [&](RankHandle rank) {
      const std::vector<Array> mine = inputs(dtype, rank.communicator.rank(), 1);
      OnDevice memory(rank.device, mine);
      run_collective(rank, StreamId::compute, CollectiveKind::broadcast, ReduceOp::sum,
                     in_place(memory, mine));
      EXPECT_TRUE(memory.read(mine) == expected) << name_of(dtype);
    });
  }
}

TEST_P(Collectives, AllToAll) {
  const Kind& kind = GetParam();
  for (const DType dtype : {DType::f32, DType::bf16, DType::u8}) {
    run_well(kind, [&](RankHandle rank) {
      const int me = rank.communicator.rank();
      std::vector<Array> mine = inputs(dtype, me, kind.ranks);
      const std::size_t tensors = mine.size();
      for (std::size_t i = 0; i < tensors; ++i) mine.push_back(mine[i]);  // where it goes
      OnDevice memory(rank.device, mine);
      std::vector<Segment> segments;
      for (std::size_t i = 0; i < tensors; ++i) {
        segments.push_back({memory.view(i, mine[i]), memory.view(i + tensors, mine[i])});
      }
      run_collective(rank, StreamId::communication, CollectiveKind::all_to_all, ReduceOp::sum,
                     segments);
      const std::vector<Array> got = memory.read(mine);
      for (int from = 0; from < kind.ranks; ++from) {
        const std::vector<Array> theirs = inputs(dtype, from, kind.ranks);
        for (std::size_t i = 0; i < tensors; ++i) {
          const std::int64_t chunk = kCounts[i];
          for (std::int64_t j = 0; j < chunk; ++j) {
            ASSERT_EQ(got[i + tensors].get(from * chunk + j), theirs[i].get(me * chunk + j));
          }
        }
      }
    });
  }
}

// Many in a row on two streams without a host wait: order and reuse of exchange buffers.
TEST_P(Collectives, ManyInARowOnTwoStreams) {
  const Kind& kind = GetParam();
  constexpr int kRounds = 100;
  run_well(kind, [&](RankHandle rank) {
    const std::vector<Array> ones(2, [] {
      Array one(DType::f64, 257);
      for (std::int64_t i = 0; i < one.count; ++i) one.set(i, 1);
      return one;
    }());
    OnDevice memory(rank.device, ones);
    const TensorView a = memory.view(0, ones[0]), b = memory.view(1, ones[1]);
    const Segment first{a, a}, second{b, b};
    for (int round = 0; round < kRounds; ++round) {
      const auto send = [&](StreamId stream, const Segment& segment) {
        rank.communicator.run(
            stream, {CollectiveKind::all_reduce, ReduceOp::average, Purpose::data, {&segment, 1}},
            nullptr);
      };
      send(StreamId::communication, first);
      send(StreamId::compute, second);
    }
    rank.device.synchronize(StreamId::communication);
    rank.device.synchronize(StreamId::compute);
    expect_equal(kind, memory.read(ones), ones);
  });
}

std::vector<Kind> kinds() {
  std::vector<Kind> all;
  for (const int ranks : {1, 2, 3, 4, 8}) {
    all.push_back(
        {"same_gpu_" + std::to_string(ranks), cuda::make_same_gpu_group, ranks, true, true});
  }
  all.push_back({"nccl_1", cuda::make_nccl_group, 1, true, true});
  const int devices = cuda::device_count();
  if (devices > 1) {
    all.push_back(
        {"nccl_" + std::to_string(devices), cuda::make_nccl_group, devices, false, false});
  }
  return all;
}

INSTANTIATE_TEST_SUITE_P(Worlds, Collectives, testing::ValuesIn(kinds()),
                         [](const auto& test) { return test.param.name; });

TEST(CollectiveMismatch, IsAnErrorOnEveryRankThatNamesBothCalls) {
  const Kind kind{"same_gpu_2", cuda::make_same_gpu_group, 2, true, true};
  const std::vector<std::string> errors = run_group(kind, [](RankHandle rank) {
    const std::vector<Array> mine = inputs(DType::f32, rank.communicator.rank(), 2);
    OnDevice memory(rank.device, mine);
    const bool first = rank.communicator.rank() == 0;
    run_collective(rank, StreamId::compute,
                   first ? CollectiveKind::all_reduce : CollectiveKind::broadcast, ReduceOp::sum,
                   in_place(memory, mine));
  });
  for (const std::string& error : errors) {
    EXPECT_NE(error.find("all_reduce"), std::string::npos) << error;
    EXPECT_NE(error.find("broadcast"), std::string::npos) << error;
  }
}

}  // namespace
}  // namespace zl::gpu
