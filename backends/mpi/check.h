// Errors of MPI's own calls. Ownership: nothing. Threads: any.
#pragma once

#include "core/base/error.h"

namespace zl::mpi {

// Error{failed} "MPI_Isend: ..." unless the status is MPI_SUCCESS.
void check(int status, const char* call);

}  // namespace zl::mpi
