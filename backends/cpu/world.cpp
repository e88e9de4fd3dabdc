#include "backends/cpu/world.h"

#include <exception>
#include <string>
#include <vector>

#include "backends/cpu/thread_communicator.h"
#include "core/base/machine_memory.h"
#include "core/threads/failures.h"
#include "core/threads/keep_to_core.h"
#include "core/threads/rank_threads.h"

#ifdef _OPENMP
#include <omp.h>
#endif

namespace zl::cpu {
namespace {

class ThreadWorld final : public World {
 public:
  ThreadWorld(int ranks, int threads, double link_bandwidth, std::chrono::milliseconds timeout)
      : threads_(threads),
        timeout_(timeout),
        group_(std::make_shared<ThreadGroup>(ranks, timeout)) {
    const std::int64_t share = machine_memory() / ranks;
    for (int rank = 0; rank < ranks; ++rank) {
      const auto leave = [this, rank](const std::string& why) { group_->leave(rank, why); };
      ranks_.push_back(std::make_unique<Rank>(group_, rank, threads, share, link_bandwidth, leave));
    }
  }

  int ranks() const override { return group_->ranks(); }
  int executed_ranks() const override { return group_->ranks(); }

  void run(const std::function<void(RankHandle)>& program) override {
    group_->reset();
    Failures failures;
    run_on_threads(ranks(), failures, timeout_, [&](int rank) {
      run_rank(*ranks_[static_cast<std::size_t>(rank)], program, failures);
    });
    failures.rethrow();
  }

 private:
  struct Rank {
    Rank(const std::shared_ptr<ThreadGroup>& group, int rank, int threads, std::int64_t host_memory,
         double link_bandwidth, HostStream::OnFailure leave)
        : device({.threads = threads,
                  .on_failure = std::move(leave),
                  .host_memory = host_memory,
                  .communicates_itself = group->ranks() == 1}),
          communicator(group, rank, device, link_bandwidth) {}
    Device device;
    ThreadCommunicator communicator;
  };

  void run_rank(Rank& rank, const std::function<void(RankHandle)>& program, Failures& failures) {
#ifdef _OPENMP
    omp_set_num_threads(threads_);
#endif
    const int number = rank.communicator.rank();
    if (all_at_work_ && threads_ == 1) keep_to_core(number, ranks());
    try {
      program({rank.device, rank.communicator});
      // Stream 0, compute, is this thread.
      for (std::size_t stream = 1; stream < kStreams; ++stream) {
        rank.device.synchronize(static_cast<StreamId>(stream));
      }
      group_->end(number);
    } catch (...) {
      failures.add(std::current_exception());
      group_->leave(number, message_of(std::current_exception()));
    }
    for (const std::exception_ptr& error : rank.device.finish()) failures.add(error);
  }

  int threads_;
  std::chrono::milliseconds timeout_;
  std::shared_ptr<ThreadGroup> group_;
  std::vector<std::unique_ptr<Rank>> ranks_;
};

}  // namespace

std::unique_ptr<World> make_world(const WorldOptions& options) {
  if (options.ranks < 1 || options.ranks > kMaxRanks) {
    throw Error(ErrorCode::invalid, "ranks: " + std::to_string(options.ranks) +
                                        " is not between 1 and " + std::to_string(kMaxRanks) +
                                        ", what the cpu backend can run");
  }
  return std::make_unique<ThreadWorld>(options.ranks, threads_per_rank(options, options.ranks),
                                       options.link_bandwidth, patience(options));
}

}  // namespace zl::cpu
