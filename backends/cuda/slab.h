// Large pieces of memory, which the pool divides: device memory, page-locked host memory, and host
// memory that takes pages only as they are written.
// Ownership: the caller's. Threads: any whose current device is the slab's.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/base/memory.h"

namespace zl::cuda {

// Null where there is not so much memory. Throws Error{failed} on any other failure.
std::byte* make_slab(MemorySpace space, std::int64_t bytes);
// Nothing may use it any more. Does not throw: after a failed kernel nothing can be given back.
void free_slab(MemorySpace space, std::byte* slab, std::int64_t bytes);

}  // namespace zl::cuda
