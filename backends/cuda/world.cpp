#include "backends/cuda/world.h"

#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include "backends/cuda/nccl_communicator.h"
#include "backends/cuda/same_gpu_communicator.h"
#include "core/device/failures.h"

namespace zl::cuda {
namespace {

constexpr std::chrono::minutes kTimeout{1};

void run_rank(RankGroup& group, int ordinal, int rank, bool deterministic,
              const std::function<void(RankHandle)>& program) {
  Device device(
      ordinal, rank, [&](const std::string& why) { group.leave(rank, why); }, deterministic);
  const std::unique_ptr<Communicator> communicator = group.join(device, rank);
  program({device, *communicator});
  for (std::size_t stream = 0; stream < kDeviceStreams; ++stream) {
    device.synchronize(static_cast<StreamId>(stream));
  }
}

class GpuWorld final : public World {
 public:
  GpuWorld(int ranks, bool deterministic) : ranks_(ranks), deterministic_(deterministic) {}

  int ranks() const override { return ranks_; }
  int executed_ranks() const override { return ranks_; }

  void run(const std::function<void(RankHandle)>& program) override {
    const bool own_gpus = ranks_ > 1 && device_count() >= ranks_;
    const auto group =
        own_gpus ? make_nccl_group(ranks_, kTimeout) : make_same_gpu_group(ranks_, kTimeout);
    Failures failures;
    {
      std::vector<std::jthread> threads;
      for (int rank = 0; rank < ranks_; ++rank) {
        threads.emplace_back([&, rank] {
          try {
            run_rank(*group, own_gpus ? rank : 0, rank, deterministic_, program);
          } catch (...) {
            failures.add(std::current_exception());
            group->leave(rank, message_of(std::current_exception()));
          }
        });
      }
    }
    failures.rethrow();
  }

 private:
  int ranks_;
  bool deterministic_;
};

// This process is one rank; the others are processes that a launcher started, here or elsewhere.
class ProcessWorld final : public World {
 public:
  ProcessWorld(const Launch& launch, bool deterministic)
      : launch_(launch), deterministic_(deterministic) {}

  int ranks() const override { return launch_.ranks; }
  int executed_ranks() const override { return 1; }

  void run(const std::function<void(RankHandle)>& program) override {
    if (launch_.local_rank >= device_count()) {
      throw Error(ErrorCode::unavailable,
                  "rank " + std::to_string(launch_.rank) + " is process " +
                      std::to_string(launch_.local_rank) + " of its node, which has " +
                      std::to_string(device_count()) + " GPUs; start one process a GPU");
    }
    const auto group = make_nccl_process_group(launch_, kTimeout);
    try {
      run_rank(*group, launch_.local_rank, launch_.rank, deterministic_, program);
    } catch (...) {
      group->leave(launch_.rank, message_of(std::current_exception()));
      throw;
    }
  }

 private:
  Launch launch_;
  bool deterministic_;
};

}  // namespace

std::unique_ptr<World> make_world(const WorldOptions& options) {
  if (const auto launch = detect_launch()) {
    return std::make_unique<ProcessWorld>(*launch, options.deterministic);
  }
  if (options.ranks < 1 || options.ranks > kMaxRanks) {
    throw Error(ErrorCode::invalid, "ranks: " + std::to_string(options.ranks) +
                                        " is not between 1 and " + std::to_string(kMaxRanks) +
                                        ", what the cuda backend can run");
  }
  return std::make_unique<GpuWorld>(options.ranks, options.deterministic);
}

}  // namespace zl::cuda
