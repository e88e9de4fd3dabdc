// Generations of GPUs: what kernels there are, and how fast they run, goes by these.
// Ownership: values. Threads: pure functions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <iterator>

namespace zl::sim {

enum class Generation : std::uint8_t { unknown, volta, ampere, ada, hopper, blackwell, cdna3 };
inline constexpr const char* kGenerationNames[] = {"unknown", "volta",     "ampere", "ada",
                                                   "hopper",  "blackwell", "cdna3"};
inline constexpr std::size_t kGenerations = std::size(kGenerationNames);

constexpr const char* name_of(Generation generation) {
  return kGenerationNames[static_cast<std::size_t>(generation)];
}

}  // namespace zl::sim
