// Collectives of ranks that have a GPU each, through NCCL.
// Ownership and threads: as in rank_group.h.
#pragma once

#include "backends/cuda/rank_group.h"

namespace zl::cuda {

// All `ranks` are threads of this process. Throws Error{unavailable} when NCCL cannot be loaded.
std::unique_ptr<RankGroup> make_nccl_group(int ranks, std::chrono::milliseconds timeout);

}  // namespace zl::cuda
