// Messages and groups of CUDA ranks, over the fakes: the programs of tests/backends_cpu_world
// against their serial references, and what happens when ranks fail, differ or do not come.
#include <gtest/gtest.h>

#include <thread>

#include "backends/cuda/nccl_communicator.h"
#include "backends/cuda/same_gpu_communicator.h"
#include "tests/backends_cpu_world/group_programs.h"
#include "tests/cuda_fake/fake.h"

namespace zl::cuda {
namespace {

using namespace cpu::test;
using std::chrono::milliseconds;

constexpr milliseconds kLong{1000 * 1000};  // a test that waits for it would be killed

struct Kind {
  std::string name;
  std::unique_ptr<RankGroup> (*make)(int ranks, milliseconds timeout);
  bool one_gpu;
};

void PrintTo(const Kind& kind, std::ostream* out) { *out << kind.name; }

using Program = std::function<void(RankHandle)>;

// What each rank's thread throws; "" for none.
std::vector<std::string> errors_of(const Kind& kind, int ranks, const Program& program,
                                   milliseconds timeout = kLong) {
  const auto group = kind.make(ranks, timeout);
  std::vector<std::string> errors(static_cast<std::size_t>(ranks));
  std::vector<std::jthread> threads;
  for (int rank = 0; rank < ranks; ++rank) {
    threads.emplace_back([&, rank] {
      try {
        Device device(kind.one_gpu ? 0 : rank, rank,
                      [&, rank](const std::string& why) { group->leave(rank, why); });
        const auto communicator = group->join(device, rank);
        program({device, *communicator});
        synchronize({device, *communicator});
        group->finish(rank);
      } catch (const std::exception& error) {
        errors[static_cast<std::size_t>(rank)] = error.what();
        group->leave(rank, error.what());
      }
    });
  }
  threads.clear();
  return errors;
}

void run_well(const Kind& kind, int ranks, const Program& program) {
  for (const std::string& error : errors_of(kind, ranks, program)) EXPECT_EQ(error, "");
}

class CudaGroups : public testing::TestWithParam<Kind> {
  const fake::Gpus machine_{8};
};

TEST_P(CudaGroups, RandomMessagesArriveWhole) {
  for (const int ranks : {2, 3, 5, 8}) {
    for (unsigned seed = 1; seed <= 3; ++seed) {
      run_well(GetParam(), ranks, [&](RankHandle rank) {
        exchange_rounds(rank, rank.communicator, random_rounds(seed, ranks));
      });
    }
  }
}

TEST_P(CudaGroups, SplitInEveryWay) { run_well(GetParam(), 3, split_in_every_way); }

TEST_P(CudaGroups, SumsAlongEachAxisOfAMesh) {
  for (const Mesh& mesh : {Mesh{.tensor = 2, .shard = 2, .pipeline = 2},
                           Mesh{.tensor = 2, .shard = 2, .replicate = 2}, Mesh{.pipeline = 3}}) {
    run_well(GetParam(), mesh.ranks(), [&](RankHandle rank) { add_along_axes(rank, mesh); });
  }
}

TEST_P(CudaGroups, MessagesWithinSplitGroups) {
  run_well(GetParam(), 6, [](RankHandle rank) {
    const auto group = rank.communicator.split(rank.communicator.rank() % 2, 0);
    const auto seed = static_cast<unsigned>(rank.communicator.rank() % 2 + 1);
    exchange_rounds(rank, *group, random_rounds(seed, group->size()));
  });
}

TEST_P(CudaGroups, ARankThatThrowsReleasesTheOthersInEveryGroup) {
  const auto errors = errors_of(GetParam(), 6, [](RankHandle rank) {
    const int me = rank.communicator.rank();
    const auto pair = rank.communicator.split(me / 2, 0);
    const auto nested = pair->split(0, -me);
    const DeviceArray a(rank.device, one_integer(1));
    if (me == 5) throw std::domain_error("no disk");
    if (me == 0) receive_one(rank.communicator, StreamId::communication, 1, a.view());
    if (me == 1) send_one(rank.communicator, StreamId::communication, 3, a.view());
    if (me == 2) receive_one(*pair, StreamId::communication, 1, a.view());
    if (me == 3) send_one(rank.communicator, StreamId::communication, 4, a.view());
    if (me == 4) add_up(*nested, StreamId::communication, a);
    synchronize(rank);
  });
  for (std::size_t rank = 0; rank < 5; ++rank) {
    EXPECT_NE(errors[rank].find("rank 5 has left: no disk"), std::string::npos) << errors[rank];
  }
  EXPECT_EQ(errors[5], "no disk");
}

TEST_P(CudaGroups, AnUnmatchedReceiveIsNamedWhenTimeIsUp) {
  const auto errors = errors_of(
      GetParam(), 2,
      [](RankHandle rank) {
        const auto group = rank.communicator.split(0, 0);
        const DeviceArray a(rank.device, Array(DType::f32, 4));
        if (rank.communicator.rank() == 0) {
          receive_one(*group, StreamId::communication, 1, a.view());
        } else {
          add_up(*group, StreamId::communication, a);
        }
        synchronize(rank);
        add_up(*group, StreamId::compute, a);
      },
      milliseconds(1500));
  for (const std::string& error : errors) {
    EXPECT_NE(error.find("1500 ms"), std::string::npos) << error;
  }
  EXPECT_NE((errors[0] + errors[1]).find("to receive fp32 [4] from rank 1"), std::string::npos)
      << errors[0];
}

// NCCL knows only that something is wrong; ranks that share a GPU know what.
TEST_P(CudaGroups, MessagesThatDifferEndBothRanks) {
  const auto errors = errors_of(GetParam(), 2, [](RankHandle rank) {
    const int me = rank.communicator.rank();
    const DeviceArray a(rank.device, Array(DType::f32, 8));
    const Message message{1 - me, me == 0, a.view().flat(0, 4 + me)};
    rank.communicator.exchange(StreamId::communication, {&message, 1}, nullptr);
    synchronize(rank);
    while (true) add_up(rank.communicator, StreamId::communication, a);
  });
  for (const std::string& error : errors) {
    EXPECT_NE(error.find(GetParam().one_gpu ? "rank 0 sends fp32 [4], rank 1 receives fp32 [5]"
                                            : "fp32 ["),
              std::string::npos)
        << error;
  }
}

INSTANTIATE_TEST_SUITE_P(Kinds, CudaGroups,
                         testing::Values(Kind{"same_gpu", make_same_gpu_group, true},
                                         Kind{"nccl", make_nccl_group, false}),
                         [](const auto& test) { return test.param.name; });

}  // namespace
}  // namespace zl::cuda
