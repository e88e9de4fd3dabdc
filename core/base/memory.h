// Where bytes live and what they are for.
#pragma once

#include <cstddef>
#include <cstdint>

namespace zl {

// nvme: files of a Storage, which no op can address.
enum class MemorySpace : std::uint8_t { device, pinned_host, host, nvme };
inline constexpr std::size_t kMemorySpaces = 4;

enum class MemoryTag : std::uint8_t {
  parameter,      // weights in the compute type (gathered or sharded)
  gradient,       // persistent gradients
  optimizer,      // fp32 masters, moments
  activation,     // kept for the backward, and what a block needs while it runs
  communication,  // gradient buckets, gathered copies made only to be sent
  workspace,      // scratch of single ops, logits chunks
  staging,        // token ids, scalars, and what is on its way between tiers
  kv_cache,       // keys and values of what was generated so far
};
inline constexpr std::size_t kMemoryTags = 8;

const char* name_of(MemorySpace space);
const char* name_of(MemoryTag tag);

}  // namespace zl
