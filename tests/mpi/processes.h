// This process among those that the launcher started, for the tests of MPI ranks.
// Ownership: none. Threads: any.
#pragma once

#include "backends/mpi/world.h"

namespace zl::mpi {

inline int me() { return processes().rank; }
inline int ranks() { return processes().count; }

}  // namespace zl::mpi
