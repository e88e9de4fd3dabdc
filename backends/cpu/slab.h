// Memory of a slab, in huge pages where the system grants them.
// Ownership: a slab belongs to whoever mapped it. Threads: free to call from any.
#pragma once

#include <cstddef>
#include <cstdint>

namespace zl::cpu {

// `bytes` bytes aligned to a page of 4096, all zero; nullptr where the system has no more
// addresses. One slab after another begins at another offset in its huge page: ops stream through
// several at the same index, and where these lie a power of two apart their rows share a bank of
// the memory (AdamW over four of 1.25 GiB took 2.7 times as long).
std::byte* map_slab(std::int64_t bytes);

// What map_slab(bytes) gave.
void unmap_slab(std::byte* slab, std::int64_t bytes);

}  // namespace zl::cpu
