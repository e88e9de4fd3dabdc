// What the files of the fake runtime tell each other.
// Ownership: nothing. Threads: any.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>

#include "tests/cuda_fake/fake.h"

namespace zl::cuda::fake {

// What every call that needs the device does first: counts it, notes that the thread's device has a
// context, and returns the error of an earlier kernel or of an injection.
// can_fail: by itself; calls that only wait or ask report nothing but earlier failures.
cudaError_t begin(bool can_fail = true);
// Keeps an error for cudaGetLastError() and returns it.
cudaError_t report(cudaError_t status);

// Until all that is enqueued on the thread's device has run.
void wait_for_device();

std::size_t memory_of_each();
bool fits(const void* address, std::size_t bytes);
void fill_memory(void* address, int value, std::size_t bytes);

}  // namespace zl::cuda::fake
