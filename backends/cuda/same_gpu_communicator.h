// Collectives of thread ranks that share one GPU, through its memory; deterministic.
// Ownership and threads: as in rank_group.h.
#pragma once

#include "backends/cuda/rank_group.h"

namespace zl::cuda {

// timeout: how long a rank waits in a collective that others do not join.
std::unique_ptr<RankGroup> make_same_gpu_group(int ranks, std::chrono::milliseconds timeout);

}  // namespace zl::cuda
