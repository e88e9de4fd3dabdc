// The NCCL communicator when ranks fail, differ or are slow, over the fake NCCL.
#include "backends/cuda/nccl_communicator.h"

#include <gtest/gtest.h>

#include <atomic>
#include <stdexcept>
#include <thread>

#include "backends/cuda/event_ring.h"
#include "backends/cuda/world.h"
#include "core/rank/agreement.h"
#include "tests/cuda_fake/fake.h"

namespace zl::cuda {
namespace {

using std::chrono::milliseconds;

// A slab of each rank for its collectives.
class Slab {
 public:
  explicit Slab(zl::Device& device)
      : device_(device), memory_(device.reserve(MemorySpace::device, kBytes)) {}
  ~Slab() { device_.release(MemorySpace::device, memory_, kBytes); }
  Slab(const Slab&) = delete;
  Slab& operator=(const Slab&) = delete;
  TensorView floats(std::int64_t count) const { return {memory_, DType::f32, Shape{count}}; }

 private:
  static constexpr std::int64_t kBytes = 4096;
  zl::Device& device_;
  std::byte* memory_;
};

void all_reduce(RankHandle rank, const TensorView& x, ReduceOp op = ReduceOp::sum) {
  const Segment segment{x, x};
  rank.communicator.run(StreamId::communication,
                        {CollectiveKind::all_reduce, op, Purpose::data, {&segment, 1}}, nullptr);
}

using Program = std::function<void(RankHandle)>;

// What each rank's thread throws; "" for none.
std::vector<std::string> errors_of(int ranks, milliseconds timeout, const Program& program,
                                   const std::function<void(int)>& before_joining = {}) {
  const auto group = make_nccl_group(ranks, timeout);
  std::vector<std::string> errors(static_cast<std::size_t>(ranks));
  std::vector<std::jthread> threads;
  for (int rank = 0; rank < ranks; ++rank) {
    threads.emplace_back([&, rank] {
      try {
        Device device(rank, rank, [&, rank](const std::string& why) { group->leave(rank, why); });
        if (before_joining) before_joining(rank);
        const auto communicator = group->join(device, rank);
        program({device, *communicator});
        device.synchronize(StreamId::communication);
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

constexpr milliseconds kLong{1000 * 1000};  // a test that waits for it would be killed

void expect_left(const std::vector<std::string>& errors, std::size_t first) {
  for (std::size_t rank = 0; rank < errors.size(); ++rank) {
    if (rank == first) {
      EXPECT_EQ(errors[rank], "no disk");
    } else {
      EXPECT_NE(errors[rank].find("rank " + std::to_string(first) + " has left: "),
                std::string::npos)
          << errors[rank];
    }
  }
}

TEST(NcclFailures, ARankThatNeverJoinsReleasesTheOthers) {
  expect_left(errors_of(
                  4, kLong, [](RankHandle) {},
                  [](int rank) {
                    if (rank == 2) throw std::runtime_error("no disk");
                  }),
              2);
}

TEST(NcclFailures, ARankThatThrowsReleasesTheOthers) {
  for (const int healthy : {0, 1, 5}) {
    expect_left(errors_of(3, kLong,
                          [&](RankHandle rank) {
                            const Slab slab(rank.device);
                            for (int i = 0; i < 1000; ++i) {
                              if (rank.communicator.rank() == 1 && i == healthy) {
                                throw std::runtime_error("no disk");
                              }
                              all_reduce(rank, slab.floats(7));
                            }
                          }),
                1);
  }
}

TEST(NcclFailures, RanksThatStateDifferentFactsAllHearOfIt) {
  const auto errors = errors_of(2, kLong, [](RankHandle rank) {
    agree(rank, {.facts = {{"run.seed", std::to_string(rank.communicator.rank())}}, .failure = {}});
  });
  for (const std::string& error : errors) {
    EXPECT_NE(error.find("run.seed: rank 0 has 0, rank 1 has 1"), std::string::npos) << error;
  }
}

// On GPUs such collectives hang or mix; the watchdog names one that is under way.
TEST(NcclFailures, CollectivesThatDifferEndAllRanks) {
  const auto errors = errors_of(2, kLong, [](RankHandle rank) {
    const Slab slab(rank.device);
    all_reduce(rank, slab.floats(7));
    all_reduce(rank, slab.floats(rank.communicator.rank() == 0 ? 7 : 8));
    while (true) all_reduce(rank, slab.floats(1));
  });
  for (const std::string& error : errors) {
    EXPECT_NE(error.find("all_reduce"), std::string::npos) << error;
  }
  EXPECT_NE((errors[0] + errors[1]).find("invalid usage"), std::string::npos) << errors[0];
}

TEST(NcclFailures, ACollectiveThatOthersDoNotJoinIsNamedWhenTimeIsUp) {
  const auto errors = errors_of(2, milliseconds(4000), [](RankHandle rank) {
    const Slab slab(rank.device);
    all_reduce(rank, slab.floats(7));
    if (rank.communicator.rank() == 1) return;
    all_reduce(rank, slab.floats(9));
    rank.device.synchronize(StreamId::communication);
    all_reduce(rank, slab.floats(11));
  });
  EXPECT_EQ(errors[1], "");
  for (const char* part : {"collective #2", "[9]", "did not end within 4000 ms"}) {
    EXPECT_NE(errors[0].find(part), std::string::npos) << errors[0];
  }
}

// The host is ahead of the device until the stream takes no more.
TEST(NcclFailures, ACollectiveThatOthersDoNotJoinIsNamedAlsoByARankWhoseStreamIsFull) {
  const fake::FullQueue queue(8);
  const auto errors = errors_of(2, milliseconds(2000), [](RankHandle rank) {
    const Slab slab(rank.device);
    all_reduce(rank, slab.floats(7));
    if (rank.communicator.rank() == 1) {
      rank.device.synchronize(StreamId::communication);
      throw std::runtime_error("no disk");
    }
    for (int i = 0; i < 100; ++i) all_reduce(rank, slab.floats(9));
  });
  EXPECT_NE(errors[0].find("rank 1 has left: no disk"), std::string::npos) << errors[0];
}

// Another rank keeps it from flushing what is left of its connections.
TEST(NcclEnd, ACommunicatorThatIsNotFinalizedInTimeIsAnErrorOfEveryRank) {
  const fake::NcclHangs hangs(fake::NcclEnd::finalize);
  const auto errors = errors_of(2, milliseconds(1000), [](RankHandle rank) {
    const Slab slab(rank.device);
    const auto half = rank.communicator.split(rank.communicator.rank(), 0);
    all_reduce(rank, slab.floats(7));
  });
  for (const std::string& error : errors) {
    EXPECT_NE(error.find("ncclCommFinalize of a group of "), std::string::npos) << error;
  }
  EXPECT_NE((errors[0] + errors[1]).find("within 1000 ms"), std::string::npos) << errors[0];
}

void train_and_fail(bool fails) {
  errors_of(2, milliseconds(1000), [&](RankHandle rank) {
    const Slab slab(rank.device);
    all_reduce(rank, slab.floats(7));
    if (fails) throw std::runtime_error("no disk");
  });
}

TEST(NcclEndDeathTest, CallsThatDoNotReturnEndTheProcess) {
  testing::GTEST_FLAG(death_test_style) = "threadsafe";
  const auto hang_in = [](fake::NcclEnd call) {
    const fake::NcclHangs hangs(call);
    train_and_fail(call == fake::NcclEnd::abort);
  };
  EXPECT_EXIT(hang_in(fake::NcclEnd::destroy), testing::ExitedWithCode(1),
              "zerolab: error: rank [01], ncclCommDestroy has not returned within 1000 ms");
  EXPECT_EXIT(hang_in(fake::NcclEnd::abort), testing::ExitedWithCode(1),
              "zerolab: error: rank [01], ncclCommAbort has not returned within 1000 ms");
}

// The collective's own time counts, not that of what is enqueued before it.
TEST(NcclWatchdog, WorkBeforeACollectiveMayTakeLongerThanItsTimeout) {
  const auto errors = errors_of(2, milliseconds(2000), [](RankHandle rank) {
    const Slab slab(rank.device);
    auto& device = dynamic_cast<Device&>(rank.device);
    std::atomic<bool> open{false};
    fake::enqueue(device.stream(StreamId::communication), [&] { open.wait(false); });
    all_reduce(rank, slab.floats(7));
    const auto start = std::chrono::steady_clock::now();
    while (std::chrono::steady_clock::now() - start < milliseconds(2500)) std::this_thread::yield();
    open = true;
    open.notify_all();
    device.synchronize(StreamId::communication);
  });
  for (const std::string& error : errors) EXPECT_EQ(error, "");
}

TEST(NcclWatchdog, ManyCollectivesShareFewEvents) {
  const std::int64_t before = fake::events_made();
  const auto errors = errors_of(1, kLong, [](RankHandle rank) {
    const Slab slab(rank.device);
    for (int i = 0; i < 1000; ++i) {
      all_reduce(rank, slab.floats(7));
      rank.device.synchronize(StreamId::communication);
    }
  });
  EXPECT_EQ(errors[0], "");
  EXPECT_LE(fake::events_made() - before, EventRing::kEvents);
}

// Asking for an event's state would make a context, of hundreds of megabytes, on the thread's GPU.
TEST(NcclWatchdog, LeavesOtherGpusAlone) {
  const auto group = make_nccl_group(1, kLong);
  std::thread([&] {
    Device device(2, 0);
    const auto communicator = group->join(device, 0);
    const Slab slab(device);
    std::atomic<bool> open{false};
    fake::enqueue(device.stream(StreamId::communication), [&] { open.wait(false); });
    all_reduce({device, *communicator}, slab.floats(7));
    const std::int64_t before = fake::calls();
    while (fake::calls() < before + 3) std::this_thread::yield();  // the watchdog's
    open = true;
    open.notify_all();
    device.synchronize(StreamId::communication);
  }).join();
  EXPECT_EQ(fake::touched_devices(), std::set<int>{2});
}

TEST(NcclWorld, GivesEveryRankAGpuAndTheCauseOfAFailure) {
  const fake::Gpus machine(3);
  std::atomic<int> ordinals{0};
  const auto world = make_world({.ranks = 3, .threads_per_rank = 1}, fake::run_on_host);
  EXPECT_THROW(world->run([&](RankHandle rank) {
    const Slab slab(rank.device);
    ordinals |= 1 << dynamic_cast<Device&>(rank.device).ordinal();
    for (int i = 0;; ++i) {
      if (rank.communicator.rank() == 2 && i == 4) throw std::domain_error("no disk");
      all_reduce(rank, slab.floats(5));
    }
  }),
               std::domain_error);
  EXPECT_EQ(ordinals, 7);
}

}  // namespace
}  // namespace zl::cuda
