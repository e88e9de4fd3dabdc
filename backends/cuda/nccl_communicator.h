// Collectives of ranks that have a GPU each, through NCCL.
// Ownership and threads: as in rank_group.h.
#pragma once

#include "backends/bootstrap/launch.h"
#include "backends/cuda/rank_group.h"

namespace zl::cuda {

// One rank a process, started by torchrun, mpirun or srun: NCCL's own rendezvous (NCCL_COMM_ID, see
// NCCL's "Environment Variables") gives every process the same id without a word between them.
// Nothing is promised about the order of additions: results depend on NCCL's algorithm, and are the
// same from run to run on one topology.
std::unique_ptr<RankGroup> make_nccl_process_group(const Launch& launch,
                                                   std::chrono::milliseconds timeout);

// All `ranks` are threads of this process. Throws Error{unavailable} when NCCL cannot be loaded.
std::unique_ptr<RankGroup> make_nccl_group(int ranks, std::chrono::milliseconds timeout);

}  // namespace zl::cuda
