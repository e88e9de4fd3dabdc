// The type of a CUDA stream without CUDA's headers, so that host files compile without them.
// Ownership: nothing. Threads: nothing.
#pragma once

#ifdef ZL_CUDA_HOST
#include ZL_CUDA_HOST  // the header to use instead
#else
struct CUstream_st;
namespace zl::cuda {
using Stream = CUstream_st*;  // cudaStream_t
}
#endif
