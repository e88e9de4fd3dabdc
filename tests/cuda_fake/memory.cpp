// Memory of the fake runtime: mapped pages that read as NaN until they are written.
#include <cuda_runtime_api.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <mutex>
#include <vector>

#include "tests/cuda_fake/runtime.h"

namespace zl::cuda::fake {
namespace {

constexpr std::size_t kChunk = std::size_t{16} << 20;

struct Memory {
  std::size_t bytes = 0;  // as asked for
  Reach reach = Reach::pageable;
  int device = 0;
};
std::mutex mutex;
std::map<const std::byte*, Memory> memories;  // under mutex
std::map<int, std::size_t> used;              // device memory, under mutex
std::size_t capacity = std::size_t{64} << 30;

std::size_t mapped(std::size_t bytes) { return (bytes + 4095) / 4096 * 4096; }

// A file of ones that private mappings show until they are written.
int poison_file() {
  static const int file = [] {
    const int made = memfd_create("poison", 0);
    const std::vector<char> ones(kChunk, '\xff');
    if (made < 0 || write(made, ones.data(), kChunk) != static_cast<ssize_t>(kChunk)) std::abort();
    return made;
  }();
  return file;
}

void* map_poisoned(std::size_t bytes) {
  void* start = mmap(nullptr, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (start == MAP_FAILED) return nullptr;
  for (std::size_t at = 0; at < bytes; at += kChunk) {
    mmap(static_cast<std::byte*>(start) + at, std::min(kChunk, bytes - at), PROT_READ | PROT_WRITE,
         MAP_PRIVATE | MAP_FIXED | MAP_NORESERVE, poison_file(), 0);
  }
  return start;
}

// The piece of memory that holds `address`; nullptr: pageable. mutex is held.
const std::pair<const std::byte* const, Memory>* find(const void* address) {
  const auto* byte = static_cast<const std::byte*>(address);
  auto after = memories.upper_bound(byte);
  if (after == memories.begin()) return nullptr;
  --after;
  return byte < after->first + after->second.bytes ? &*after : nullptr;
}

cudaError_t allocate(void** address, std::size_t bytes, Reach reach) {
  *address = nullptr;
  if (const cudaError_t status = begin(); status != cudaSuccess) return status;
  if (bytes == 0) return cudaSuccess;
  const int device = current_device();
  const std::lock_guard lock(mutex);
  if (reach == Reach::device && used[device] + mapped(bytes) > capacity) {
    return report(cudaErrorMemoryAllocation);
  }
  *address = map_poisoned(mapped(bytes));
  if (*address == nullptr) return report(cudaErrorMemoryAllocation);
  if (reach == Reach::device) used[device] += mapped(bytes);
  memories[static_cast<std::byte*>(*address)] = {bytes, reach, device};
  return cudaSuccess;
}

cudaError_t give_back(void* address, Reach reach) {
  if (address == nullptr) return begin(false);
  wait_for_device();  // as the programming guide says of cudaFree: any stream may still use it
  const std::lock_guard lock(mutex);
  const auto found = memories.find(static_cast<std::byte*>(address));
  if (found == memories.end() || found->second.reach != reach) {
    return report(cudaErrorInvalidValue);
  }
  if (reach == Reach::device) used[found->second.device] -= mapped(found->second.bytes);
  munmap(address, mapped(found->second.bytes));
  memories.erase(found);
  return begin(false);  // which frees after a failure too: many tests share one process
}

}  // namespace

void set_memory(std::int64_t bytes) {
  const std::lock_guard lock(mutex);
  capacity = static_cast<std::size_t>(bytes);
}
std::size_t memory_of_each() {
  const std::lock_guard lock(mutex);
  return capacity;
}

Reach reach_of(const void* address) {
  const std::lock_guard lock(mutex);
  const auto* found = find(address);
  return found == nullptr ? Reach::pageable : found->second.reach;
}

bool gpu_reaches(const void* address, std::int64_t bytes) {
  if (bytes == 0) return true;
  const std::lock_guard lock(mutex);
  const auto* found = find(address);
  return found != nullptr &&
         static_cast<const std::byte*>(address) + bytes <= found->first + found->second.bytes;
}

// A copy may not run over the end of what was allocated.
bool fits(const void* address, std::size_t bytes) {
  return reach_of(address) == Reach::pageable ||
         gpu_reaches(address, static_cast<std::int64_t>(bytes));
}

// Whole pages of ones are what the file shows.
void fill_memory(void* address, int value, std::size_t bytes) {
  const bool pages = reinterpret_cast<std::uintptr_t>(address) % 4096 == 0 && bytes % 4096 == 0;
  if (value == 0xff && pages && reach_of(address) == Reach::device) {
    madvise(address, bytes, MADV_DONTNEED);
  } else {
    std::memset(address, value, bytes);
  }
}

}  // namespace zl::cuda::fake

using namespace zl::cuda;  // for the C functions below

extern "C" {

cudaError_t cudaMalloc(void** address, std::size_t bytes) {
  return fake::allocate(address, bytes, fake::Reach::device);
}
cudaError_t cudaFree(void* address) { return fake::give_back(address, fake::Reach::device); }
cudaError_t cudaHostAlloc(void** address, std::size_t bytes, unsigned) {
  return fake::allocate(address, bytes, fake::Reach::pinned);
}
cudaError_t cudaFreeHost(void* address) { return fake::give_back(address, fake::Reach::pinned); }
cudaError_t cudaMemGetInfo(std::size_t* free, std::size_t* total) {
  if (const cudaError_t status = fake::begin(); status != cudaSuccess) return status;
  const std::lock_guard lock(fake::mutex);
  *total = fake::capacity;
  *free = fake::capacity - fake::used[fake::current_device()];
  return cudaSuccess;
}
}
