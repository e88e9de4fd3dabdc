// The world of CPU ranks that are processes of an MPI launcher: this process is one of them.
// Ownership: the world owns the device and the communicator. Threads: run() calls the program on
// the caller's thread.
#pragma once

#include <memory>

#include "core/device/world.h"

namespace zl::mpi {

// The launcher's ranks, whatever the options say; Error{usage} when the options ask for several and
// this process runs alone.
std::unique_ptr<World> make_world(const WorldOptions& options);

}  // namespace zl::mpi
