// The world of CUDA ranks: threads of this process, each with a GPU of its own where there are
// enough, else all on GPU 0; or this process as one rank of a launched job.
// Ownership: the world owns devices and communicators. Threads: run() starts one thread per rank.
#pragma once

#include <functional>
#include <memory>

#include "core/device/world.h"

namespace zl::cuda {

inline constexpr int kMaxRanks = 64;

// Runs a validated op over host memory, on the calling thread and `threads` - 1 others.
using HostOps = std::function<void(const Op& op, int threads)>;

// In a launched job its ranks, whatever the options say; else 1 to 64 ranks, Error{invalid}
// otherwise. Devices are made by run(): Error{unavailable} when there is none, with the reason of
// availability(). host_ops: for offload, which cannot run without.
std::unique_ptr<World> make_world(const WorldOptions& options, HostOps host_ops = {});

}  // namespace zl::cuda
