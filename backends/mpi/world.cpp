#include "backends/mpi/world.h"

#include <exception>
#include <string>

#include "backends/mpi/communicator.h"
#include "core/threads/failures.h"

#ifdef _OPENMP
#include <omp.h>
#endif

namespace zl::mpi {
namespace {

class MpiWorld final : public World {
 public:
  MpiWorld(int threads, double link_bandwidth, std::chrono::milliseconds timeout)
      : threads_(threads), link_bandwidth_(link_bandwidth), timeout_(timeout) {}

  int ranks() const override { return processes().count; }
  int executed_ranks() const override { return 1; }

  void run(const std::function<void(RankHandle)>& program) override {
#ifdef _OPENMP
    omp_set_num_threads(threads_);
#endif
    Notices notices(timeout_);
    Failures failures;
    {
      cpu::Device device({.threads = threads_,
                          .on_failure = [&](const std::string& why) { notices.leave(why); },
                          .host_memory = processes().machine_memory / processes().local,
                          .communicates_itself = ranks() == 1});
      MpiCommunicator communicator(device, std::make_shared<ProcessGroup>(
                                               Group::world(), notices, timeout_, link_bandwidth_));
      try {
        program({device, communicator});
        for (std::size_t stream = 1; stream < kStreams; ++stream) {
          device.synchronize(static_cast<StreamId>(stream));
        }
      } catch (...) {
        failures.add(std::current_exception());
        notices.leave(message_of(std::current_exception()));
      }
      for (const std::exception_ptr& error : device.finish()) failures.add(error);
    }
    notices.finish(first_of(failures));
  }

 private:
  static std::exception_ptr first_of(const Failures& failures) {
    try {
      failures.rethrow();
    } catch (...) {
      return std::current_exception();
    }
    return nullptr;
  }

  int threads_;
  double link_bandwidth_;
  std::chrono::milliseconds timeout_;
};

}  // namespace

std::unique_ptr<World> make_world(const WorldOptions& options) {
  set_patience(patience(options));
  if (processes().count == 1 && options.ranks > 1) {
    throw Error(ErrorCode::usage,
                "communicator mpi: this process runs alone; start one a rank: "
                "mpirun -n " +
                    std::to_string(options.ranks) + " zerolab ...");
  }
  return std::make_unique<MpiWorld>(threads_per_rank(options, processes().local),
                                    options.link_bandwidth, patience(options));
}

}  // namespace zl::mpi
