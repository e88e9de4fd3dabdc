#include "core/base/memory.h"

namespace zl {

const char* name_of(MemorySpace space) {
  constexpr const char* kNames[kMemorySpaces] = {"device", "pinned_host", "host", "nvme"};
  return kNames[static_cast<std::size_t>(space)];
}

const char* name_of(MemoryTag tag) {
  constexpr const char* kNames[kMemoryTags] = {"parameter",  "gradient",      "optimizer",
                                               "activation", "communication", "workspace",
                                               "staging",    "kv_cache"};
  return kNames[static_cast<std::size_t>(tag)];
}

}  // namespace zl
