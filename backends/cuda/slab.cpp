#include "backends/cuda/slab.h"

#include <cuda_runtime_api.h>
#include <sys/mman.h>

#include "backends/cuda/error.h"

namespace zl::cuda {
namespace {

std::byte* map_host(std::int64_t bytes) {
  void* slab = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  return slab == MAP_FAILED ? nullptr : static_cast<std::byte*>(slab);
}

}  // namespace

std::byte* make_slab(MemorySpace space, std::int64_t bytes) {
  if (space == MemorySpace::host) return map_host(bytes);
  void* slab = nullptr;
  const cudaError_t status = space == MemorySpace::device
                                 ? cudaMalloc(&slab, bytes)
                                 : cudaHostAlloc(&slab, bytes, cudaHostAllocPortable);
  if (status == cudaErrorMemoryAllocation) {
    cudaGetLastError();  // the pool reports it; launches must not trip over it
    return nullptr;
  }
  check(status, space == MemorySpace::device ? "cudaMalloc" : "cudaHostAlloc");
  return static_cast<std::byte*>(slab);
}

void free_slab(MemorySpace space, std::byte* slab, std::int64_t bytes) {
  if (space == MemorySpace::device) {
    cudaFree(slab);
  } else if (space == MemorySpace::pinned_host) {
    cudaFreeHost(slab);
  } else {
    munmap(slab, bytes);
  }
  cudaGetLastError();
}

}  // namespace zl::cuda
