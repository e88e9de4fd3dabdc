// Where bytes live and what they are for.
#pragma once

#include <cstddef>
#include <cstdint>

namespace zl {

enum class MemorySpace : std::uint8_t { device, pinned_host, host };
inline constexpr std::size_t kMemorySpaces = 3;

enum class MemoryTag : std::uint8_t {
  parameter,      // weights in the compute type (gathered or sharded)
  gradient,       // persistent gradients
  optimizer,      // fp32 masters, moments
  activation,     // kept for the backward, and what a block needs while it runs
  communication,  // gradient buckets, gathered copies made only to be sent
  workspace,      // scratch of single ops, logits chunks
  staging,        // token ids, scalars on their way to the host
};
inline constexpr std::size_t kMemoryTags = 7;

const char* name_of(MemorySpace space);
const char* name_of(MemoryTag tag);

}  // namespace zl
