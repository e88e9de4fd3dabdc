// Generations of GPUs: what kernels there are, and how fast they run, goes by these.
// Ownership: values. Threads: pure functions.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace zl::sim {

enum class Generation : std::uint8_t { unknown, volta, ampere, ada, hopper, blackwell, cdna3 };
inline constexpr std::size_t kGenerations = 7;

constexpr const char* name_of(Generation generation) {
  constexpr const char* kNames[] = {"unknown", "volta",     "ampere", "ada",
                                    "hopper",  "blackwell", "cdna3"};
  return kNames[static_cast<std::size_t>(generation)];
}

// Nothing where no generation has this name.
constexpr std::optional<Generation> generation_named(std::string_view name) {
  for (std::size_t i = 0; i < kGenerations; ++i) {
    if (name == name_of(static_cast<Generation>(i))) return static_cast<Generation>(i);
  }
  return {};
}

}  // namespace zl::sim
