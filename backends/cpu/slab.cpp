#include "backends/cpu/slab.h"

#include <sys/mman.h>

#include <atomic>

namespace zl::cpu {
namespace {

constexpr std::uintptr_t kPage = 4096, kHugePage = 2 << 20;
constexpr std::uintptr_t kOffset = 9 * kPage, kOffsets = 32;
static_assert(kOffset * kOffsets <= kHugePage);

std::uintptr_t next_offset() {
  static std::atomic<std::uintptr_t> slabs{0};
  return slabs++ % kOffsets * kOffset;
}

std::uintptr_t rounded_up(std::uintptr_t value, std::uintptr_t unit) {
  return (value + unit - 1) / unit * unit;
}

void unmap(std::byte* begin, std::uintptr_t bytes) {
  if (bytes > 0) munmap(begin, bytes);
}

}  // namespace

std::byte* map_slab(std::int64_t bytes) {
  const std::uintptr_t size = rounded_up(bytes, kPage), all = size + 2 * kHugePage;
  void* map = mmap(nullptr, all, PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (map == MAP_FAILED) return nullptr;
  auto* begin = static_cast<std::byte*>(map);
  const auto address = reinterpret_cast<std::uintptr_t>(map);
  const std::uintptr_t before = rounded_up(address, kHugePage) - address + next_offset();
  std::byte* slab = begin + before;
  unmap(begin, before);
  unmap(slab + size, all - before - size);
  madvise(slab, size, MADV_HUGEPAGE);  // a hint: small pages work too
  return slab;
}

void unmap_slab(std::byte* slab, std::int64_t bytes) { munmap(slab, bytes); }

}  // namespace zl::cpu
