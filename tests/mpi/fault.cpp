// mpi_fault RANK PHASE STOP|KILL MILLISECONDS [mesh]: ranks that train, data parallel or on a mesh
// of tensor groups of two in a pipeline of two, of which one does that to itself
// when it enters that phase of its second step (or at the `start`, before MPI begins, at the `end`,
// after the run, or before it comes to `finalize`, when it has said farewell). The time is how long
// the others wait. Exits with 77 on a rank that never entered it. When it happened is written to
// the file named in ZL_TEST_FAULT_TIME, in ms since 1970.
#include <mpi.h>

#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "backends/bootstrap/launch.h"
#include "backends/mpi/session.h"
#include "backends/mpi/world.h"
#include "tests/engine/comparisons.h"
#include "tests/engine/forwarding.h"

namespace zl::mpi {
namespace {

constexpr int kMicroBatches = 2;

struct Fault {
  int rank = 0;
  std::string phase;
  int signal = 0;
  mutable bool happened = false;

  void at(const std::string& place) const {
    if (place != phase || happened) return;
    happened = true;
    const auto now = std::chrono::system_clock::now().time_since_epoch();
    if (std::FILE* file = std::fopen(std::getenv("ZL_TEST_FAULT_TIME"), "w")) {
      std::fprintf(
          file, "%lld\n",
          static_cast<long long>(std::chrono::floor<std::chrono::milliseconds>(now).count()));
      std::fclose(file);
    }
    std::raise(signal);
  }
};

const Fault* of_this_rank = nullptr;  // from the end of the run on

// The rank's, but for the fault.
class Faulty final : public test::ForwardingDevice {
 public:
  Faulty(Device& real, const Fault* fault) : ForwardingDevice(real), fault_(fault) {}

  void enter(Phase phase, int unit) override {
    if (phase == Phase::forward && unit == -1) ++loaded_;
    if (fault_ != nullptr && loaded_ > kMicroBatches) fault_->at(name_of(phase));
    ForwardingDevice::enter(phase, unit);
  }

 private:
  const Fault* fault_;  // null: of another rank
  int loaded_ = 0;      // micro-batches
};

Strategy strategy(bool on_mesh) {
  Strategy all = test::strategy(3, DType::bf16);
  all.zero.overlap_comm = true;
  all.gradient_accumulation = kMicroBatches;
  all.recompute.mode = RecomputeMode::full;
  if (!on_mesh) return all;
  all.tensor = {.ranks = 2, .sequence_parallel = true};
  all.pipeline = {.ranks = 2, .schedule = PipelineKind::zb_h1};
  return all;
}

int run(const Fault& fault, std::chrono::milliseconds timeout, bool on_mesh) {
  if (this_launch()->rank == fault.rank) fault.at("start");
  const auto world = make_world({.ranks = 2, .threads_per_rank = 1, .collective_timeout = timeout});
  const ModelConfig model = test::tiny_gpt2();
  const TokenSource data = test::learnable_tokens(model.vocab);
  ProgramOptions options = test::steps(3);
  options.sequence_length = model.max_sequence;
  world->run([&](RankHandle handle) {
    Faulty device(handle.device, processes().rank == fault.rank ? &fault : nullptr);
    run_rank({device, handle.communicator}, model, strategy(on_mesh), data, options);
  });
  if (processes().rank == fault.rank) {
    fault.at("end");
    of_this_rank = &fault;
  }
  const bool is_to_come = fault.happened || fault.phase == "finalize";
  return processes().rank == fault.rank && !is_to_come ? 77 : 0;
}

}  // namespace
}  // namespace zl::mpi

// The backend's call: the last ones are the farewells, one to each other rank.
extern "C" int MPI_Isend(const void* buffer, int count, MPI_Datatype type, int to, int tag,
                         MPI_Comm comm, MPI_Request* request) {
  const int status = PMPI_Isend(buffer, count, type, to, tag, comm, request);
  const int others = zl::this_launch()->ranks - 1;
  static int said = 0;
  if (zl::mpi::of_this_rank != nullptr && ++said == others) {
    zl::mpi::of_this_rank->at("finalize");
  }
  return status;
}

int main(int argc, char** argv) {
  if (argc != 5 && argc != 6) return 2;
  try {
    static const zl::mpi::Fault fault{std::atoi(argv[1]), argv[2],
                                      std::string(argv[3]) == "STOP" ? SIGSTOP : SIGKILL};
    return zl::mpi::run(fault, std::chrono::milliseconds(std::atoi(argv[4])), argc == 6);
  } catch (const std::exception& error) {
    zl::mpi::print_error(error.what());
    return 1;
  }
}
