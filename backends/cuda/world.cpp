#include "backends/cuda/world.h"

#include <chrono>
#include <string>
#include <utility>
#include <vector>

#include "backends/cuda/nccl_communicator.h"
#include "backends/cuda/same_gpu_communicator.h"
#include "core/base/machine_memory.h"
#include "core/threads/failures.h"
#include "core/threads/rank_threads.h"

namespace zl::cuda {
namespace {

// What the ranks of a process have in common.
struct Settings {
  bool deterministic = true;
  RunOnHost run_on_host;
  std::int64_t host_memory = 0;  // of each
  std::chrono::milliseconds timeout{};
};

Settings make_settings(const WorldOptions& options, const HostOps& host_ops, int local_ranks) {
  Settings settings{options.deterministic, {}, machine_memory() / local_ranks, patience(options)};
  if (host_ops) {
    settings.run_on_host = [host_ops, threads = threads_per_rank(options, local_ranks)](
                               const Op& op) { host_ops(op, threads); };
  }
  return settings;
}

void run_program(RankGroup& group, Device& device, int rank,
                 const std::function<void(RankHandle)>& program) {
  const std::unique_ptr<Communicator> communicator = group.join(device, rank);
  program({device, *communicator});
  for (std::size_t stream = 0; stream < kStreams; ++stream) {
    device.synchronize(static_cast<StreamId>(stream));
  }
  group.finish(rank);
}

void run_rank(RankGroup& group, int ordinal, int rank, const Settings& settings,
              const std::function<void(RankHandle)>& program, Failures& failures) {
  const auto fail = [&] {
    failures.add(std::current_exception());
    group.leave(rank, message_of(std::current_exception()));
  };
  try {
    const auto leave = [&](const std::string& why) { group.leave(rank, why); };
    Device device(ordinal, rank, leave, settings.deterministic, settings.run_on_host,
                  settings.host_memory);
    try {
      run_program(group, device, rank, program);
    } catch (...) {
      fail();
    }
    for (const std::exception_ptr& error : device.finish()) failures.add(error);
  } catch (...) {
    fail();
  }
}

class GpuWorld final : public World {
 public:
  GpuWorld(int ranks, Settings settings) : ranks_(ranks), settings_(std::move(settings)) {}

  int ranks() const override { return ranks_; }
  int executed_ranks() const override { return ranks_; }

  void run(const std::function<void(RankHandle)>& program) override {
    const bool own_gpus = ranks_ > 1 && device_count() >= ranks_;
    const auto group = own_gpus ? make_nccl_group(ranks_, settings_.timeout)
                                : make_same_gpu_group(ranks_, settings_.timeout);
    Failures failures;
    run_on_threads(ranks_, failures, settings_.timeout, [&](int rank) {
      run_rank(*group, own_gpus ? rank : 0, rank, settings_, program, failures);
    });
    failures.rethrow();
  }

 private:
  int ranks_;
  Settings settings_;
};

// This process is one rank; the others are processes that a launcher started, here or elsewhere.
class ProcessWorld final : public World {
 public:
  ProcessWorld(const Launch& launch, Settings settings)
      : launch_(launch), settings_(std::move(settings)) {}

  int ranks() const override { return launch_.ranks; }
  int executed_ranks() const override { return 1; }

  void run(const std::function<void(RankHandle)>& program) override {
    if (launch_.local_rank >= device_count()) {
      throw Error(ErrorCode::unavailable,
                  "rank " + std::to_string(launch_.rank) + " is process " +
                      std::to_string(launch_.local_rank) + " of its node, which has " +
                      std::to_string(device_count()) + " GPUs; start one process a GPU");
    }
    const auto group = make_nccl_process_group(launch_, settings_.timeout);
    Failures failures;
    run_rank(*group, launch_.local_rank, launch_.rank, settings_, program, failures);
    failures.rethrow();
  }

 private:
  Launch launch_;
  Settings settings_;
};

}  // namespace

std::unique_ptr<World> make_world(const WorldOptions& options, HostOps host_ops) {
  if (const auto& launch = this_launch()) {
    return std::make_unique<ProcessWorld>(*launch,
                                          make_settings(options, host_ops, launch->local_ranks));
  }
  if (options.ranks < 1 || options.ranks > kMaxRanks) {
    throw Error(ErrorCode::invalid, "ranks: " + std::to_string(options.ranks) +
                                        " is not between 1 and " + std::to_string(kMaxRanks) +
                                        ", what the cuda backend can run");
  }
  return std::make_unique<GpuWorld>(options.ranks, make_settings(options, host_ops, options.ranks));
}

}  // namespace zl::cuda
