// The data side of collectives and messages among ranks that share a GPU.
// Ownership: nothing. Threads: called by the ranks' threads; enqueues on the context's stream.
#pragma once

#include "backends/cuda/ops/ops.h"
#include "core/threads/thread_group.h"

namespace zl::cuda {

// This rank's part; done for everybody when all ranks' parts are.
void move_on_gpu(int rank, const ExecContext& context, const ThreadGroup::Calls& calls);

void copy_on_gpu(const ExecContext& context, std::byte* destination, const TensorView& source);

}  // namespace zl::cuda
