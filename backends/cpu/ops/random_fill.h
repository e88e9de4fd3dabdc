// Blocks of counter-based random words, and dropout's factors, for kernels.
// Ownership: nothing. Threads: pure functions.
#pragma once

#include <cstdint>

#include "core/ops/dropout_spec.h"

namespace zl::cpu {

inline constexpr std::int64_t kRandomBlock = 1024;

// words[i] = random_bits(key, first + i) for i < count <= kRandomBlock.
void random_words(const RngKey& key, std::uint64_t first, std::int64_t count, std::uint32_t* words);

// values[i] *= 1 / (1 - p) where element spec.base + first + i is kept, else 0. No-op for p = 0.
template <class A>
void apply_dropout(const DropoutSpec& spec, std::uint64_t first, std::int64_t count, A* values);

}  // namespace zl::cpu
