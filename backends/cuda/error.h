// CUDA's status codes as errors.
// Ownership: nothing. Threads: any.
#pragma once

#include <string>

namespace zl::cuda {

// "an illegal memory access was encountered (cudaErrorIllegalAddress)". status: a cudaError_t.
std::string reason(int status);

// Throws Error{failed} "<call>: <reason>" unless status is cudaSuccess, and takes the error out of
// the thread's state where CUDA lets go of it.
void check(int status, const char* call);

}  // namespace zl::cuda
