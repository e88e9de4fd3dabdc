// GPU 0 as the conformance suite sees it, for tests that choose how an op is run.
// Ownership: the device and the workspace that it is lent live as long as the process. Threads: one
// thread.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "backends/cuda/device.h"
#include "tests/conformance/harness.h"

namespace zl::test {

using RunOp = std::function<void(const Op&)>;

cuda::Device& lent_device();

// Tensors `shift` bytes from a multiple of 256; `run` enqueues on lent_device()'s compute stream.
// The scratch memory of ops is poisoned before each.
std::unique_ptr<Harness> make_cuda_harness(std::string name, std::int64_t shift, RunOp run);

}  // namespace zl::test
