// The CPU backend as the runner and `zerolab devices` see it: ranks that are threads, and ranks
// that are processes where MPI was built in. Ownership: values. Threads: any.
#pragma once

#include <string>

#include "core/device/world.h"

namespace zl {

// Registers "cpu". Its worlds: WorldOptions::communicator; Error{unavailable} for mpi in a build
// without.
void add_cpu(BackendRegistry& registry);

// "threads, mpi", or what is missing and the fix.
std::string describe_communicators();

}  // namespace zl
