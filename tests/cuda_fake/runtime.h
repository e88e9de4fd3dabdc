// What the files of the fake runtime tell each other.
// Ownership: nothing. Threads: any.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>

#include "tests/cuda_fake/fake.h"

namespace zl::cuda::fake {

// What every call that needs the device does first: counts it, notes that the thread's device has a
// context, and returns the error of an earlier kernel or of an injection.
cudaError_t begin();
// Keeps an error for cudaGetLastError() and returns it.
cudaError_t report(cudaError_t status);

std::size_t memory_of_each();
bool fits(const void* address, std::size_t bytes);
void fill_memory(void* address, int value, std::size_t bytes);

}  // namespace zl::cuda::fake
