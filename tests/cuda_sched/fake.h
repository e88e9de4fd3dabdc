// A GPU made of threads: CUDA's runtime calls and the backend's kernels for tests of its host side.
// A stream is a thread that runs what was enqueued, with random pauses; an op runs the CPU's code
// on it. Stricter than a GPU may be: pageable memory is read when a copy is called, and an op that
// gets memory which a GPU (or the host) cannot reach is an Error. Ownership: owns what cudaMalloc
// and the like made. Threads: any.
#pragma once

#include <cstdint>
#include <functional>

#include "backends/cuda/kernel/stream.h"
#include "core/ops/op.h"

namespace zl::cuda::fake {

enum class Reach { device, pinned, pageable };
Reach reach_of(const void* address);

// Any work on a stream's thread.
void enqueue(Stream stream, std::function<void()> work);
// Ops that were launched on any stream so far.
std::int64_t launches();

// For the host stream: the CPU's code after a look at the op's addresses.
void run_on_host(const Op& op, int threads);

}  // namespace zl::cuda::fake
