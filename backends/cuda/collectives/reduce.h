// Reductions over the memories of ranks that share a GPU.
// Ownership: nothing. Threads: any host thread; enqueues.
#pragma once

#include <array>

#include "backends/cuda/ops/ops.h"
#include "core/device/communicator.h"

namespace zl::cuda {

inline constexpr int kMaxSharingRanks = 64;

// The same elements in every rank's memory.
struct RankPointers {
  std::array<std::byte*, kMaxSharingRanks> at{};
};

// destinations[0..writers) = op over sources[0..ranks), `count` elements: in rank order, in f32
// (f64 for f64, 64-bit integers for i32), scaled and rounded once; the CPU's bits. A destination
// may be one of the sources, element for element.
void reduce(const ExecContext& context, DType dtype, ReduceOp op, const RankPointers& sources,
            int ranks, const RankPointers& destinations, int writers, std::int64_t count);

}  // namespace zl::cuda
