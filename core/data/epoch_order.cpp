#include "core/data/epoch_order.h"

#include "core/base/error.h"
#include "core/base/random_streams.h"
#include "core/base/rng.h"

namespace zl {
namespace {

constexpr int kRounds = 6;

// One bijection of the numbers below 4^half.
std::uint64_t mix(std::uint64_t value, int half, std::uint64_t seed, std::int64_t epoch) {
  const std::uint64_t mask = (std::uint64_t{1} << half) - 1;
  std::uint64_t left = value >> half, right = value & mask;
  const std::uint64_t high =
      (std::uint64_t{kOrderStream} << 32) | static_cast<std::uint32_t>(epoch);
  for (std::uint64_t round = 0; round < kRounds; ++round) {
    const Philox4 words = philox(seed, (round << 40) | right, high);
    const std::uint64_t next = left ^ (words.word[0] & mask);
    left = right;
    right = next;
  }
  return (left << half) | right;
}

}  // namespace

std::int64_t shuffled(std::int64_t count, std::uint64_t seed, std::int64_t epoch,
                      std::int64_t index) {
  ZL_CHECK(index >= 0 && index < count && count < (std::int64_t{1} << 60), "no such sample");
  int half = 1;
  while ((std::int64_t{1} << (2 * half)) < count) ++half;
  auto value = static_cast<std::uint64_t>(index);
  do {
    value = mix(value, half, seed, epoch);
  } while (value >= static_cast<std::uint64_t>(count));
  return static_cast<std::int64_t>(value);
}

}  // namespace zl
