#include "backends/cuda/slabs.h"

#include <cuda_runtime_api.h>
#include <sys/mman.h>

#include "backends/cuda/error.h"

namespace zl::cuda {
namespace {

std::byte* map_host(std::int64_t bytes) {
  void* slab = mmap(nullptr, static_cast<std::size_t>(bytes), PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  return slab == MAP_FAILED ? nullptr : static_cast<std::byte*>(slab);
}

}  // namespace

std::byte* Slabs::reserve(MemorySpace space, std::int64_t bytes) {
  if (space == MemorySpace::host) {
    std::byte* slab = map_host(bytes);
    if (slab != nullptr) pageable_[slab] = bytes;
    return slab;
  }
  void* slab = nullptr;
  const auto size = static_cast<std::size_t>(bytes);
  const cudaError_t status = space == MemorySpace::device
                                 ? cudaMalloc(&slab, size)
                                 : cudaHostAlloc(&slab, size, cudaHostAllocPortable);
  if (status == cudaErrorMemoryAllocation) {
    cudaGetLastError();  // the pool reports it; launches must not trip over it
    return nullptr;
  }
  check(status, space == MemorySpace::device ? "cudaMalloc" : "cudaHostAlloc");
  return static_cast<std::byte*>(slab);
}

void Slabs::release(MemorySpace space, std::byte* slab, std::int64_t bytes) {
  if (space == MemorySpace::device) {
    cudaFree(slab);
  } else if (space == MemorySpace::pinned_host) {
    cudaFreeHost(slab);
  } else {
    munmap(slab, static_cast<std::size_t>(bytes));
    pageable_.erase(slab);
  }
  cudaGetLastError();  // after a failed kernel nothing can be given back
}

bool Slabs::is_pageable(const std::byte* address) const {
  auto after = pageable_.upper_bound(address);
  if (after == pageable_.begin()) return false;
  --after;
  return address < after->first + after->second;
}

}  // namespace zl::cuda
