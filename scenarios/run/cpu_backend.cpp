#include "scenarios/run/cpu_backend.h"

#include "backends/cpu/world.h"
#include "core/base/error.h"
#include "scenarios/files/clusters.h"
#include "scenarios/run/measure.h"

#ifdef ZL_WITH_MPI
#include "backends/mpi/world.h"
#endif

namespace zl {
namespace {

#ifdef ZL_WITH_MPI
constexpr const char* kNoMpi = "";
std::unique_ptr<World> make_mpi_world(const WorldOptions& options) {
  return mpi::make_world(options);
}
#else
constexpr const char* kNoMpi =
    "this build has no MPI: CMake found none or was told ZEROLAB_MPI=OFF; apt-get install "
    "libopenmpi-dev and build again";
std::unique_ptr<World> make_mpi_world(const WorldOptions&) {
  throw Error(ErrorCode::unavailable,
              std::string("run.communicator: ") + kNoMpi + ", or use threads");
}
#endif

}  // namespace

void add_cpu(BackendRegistry& registry) {
  const auto make = [](const WorldOptions& options) {
    return options.communicator == "mpi" ? make_mpi_world(options) : cpu::make_world(options);
  };
  const auto peak_flops = [](int, DType dtype) {
    return cluster_peak_flops(load_cluster("local"), dtype);
  };
  registry.add("cpu", make, {},
               {.takes_link_bandwidth = true,
                .takes_processes = true,
                .cluster = "local",
                .peak_flops = peak_flops});
}

std::string describe_communicators() {
  const std::string why = kNoMpi;
  return why.empty() ? "threads, mpi" : "threads; " + why;
}

}  // namespace zl
