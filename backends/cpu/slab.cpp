#include "backends/cpu/slab.h"

#include <sys/mman.h>

#include <atomic>

#include "backends/cpu/ops/tile.h"

namespace zl::cpu {
namespace {

constexpr std::int64_t kPage = 4096;
constexpr std::int64_t kOffset = 9 * kPage, kOffsets = 32;
static_assert(kOffset * kOffsets <= kHugePage);

std::int64_t next_offset() {
  static std::atomic<std::uint32_t> slabs{0};
  return slabs++ % kOffsets * kOffset;
}

}  // namespace

std::byte* map_slab(std::int64_t bytes) {
  const std::int64_t size = round_up(bytes, kPage), all = size + 2 * kHugePage;
  void* map = mmap(nullptr, all, PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (map == MAP_FAILED) return nullptr;
  auto* begin = static_cast<std::byte*>(map);
  const auto address = static_cast<std::int64_t>(reinterpret_cast<std::uintptr_t>(map));
  const std::int64_t before = round_up(address, kHugePage) - address + next_offset();
  std::byte* slab = begin + before;
  if (before > 0) munmap(begin, before);
  munmap(slab + size, all - before - size);
  madvise(slab, size, MADV_HUGEPAGE);  // a hint: small pages work too
  return slab;
}

void unmap_slab(std::byte* slab, std::int64_t bytes) { munmap(slab, bytes); }

}  // namespace zl::cpu
