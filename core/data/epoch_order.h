// The order in which the samples of a data set come, epoch by epoch.
// Ownership: values. Threads: pure functions.
#pragma once

#include <cstdint>

namespace zl {

// Place in the data set of the sample that comes `index`-th in an epoch: a permutation of [0,
// count) of its own for every seed and epoch, computed without a table (Feistel rounds of Philox
// over a power of four, walked until inside; Black & Rogaway 2002).
std::int64_t shuffled(std::int64_t count, std::uint64_t seed, std::int64_t epoch,
                      std::int64_t index);

// The sample that comes `index`-th over all epochs: each epoch has every sample once.
inline std::int64_t sample_at(std::int64_t count, std::uint64_t seed, std::int64_t index) {
  return shuffled(count, seed, index / count, index % count);
}

}  // namespace zl
