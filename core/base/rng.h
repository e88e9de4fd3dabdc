// Counter-based random numbers: the value depends only on (key, counter), never on who asks or in
// which order, so results are the same for every sharding and recomputation choice.
// Algorithm: Philox4x32-10 (Salmon et al., "Parallel Random Numbers: As Easy as 1, 2, 3", SC 2011).
// Threads: pure functions. Also compiled for devices (no standard library calls inside).
#pragma once

#include <array>
#include <cstdint>

#ifdef __CUDACC__
#define ZL_HOST_DEVICE __host__ __device__
#else
#define ZL_HOST_DEVICE
#endif

namespace zl {

// What a random draw belongs to.
struct RngKey {
  std::uint64_t seed = 0;
  std::uint32_t step = 0;    // optimizer step and micro-batch folded by the caller
  std::uint32_t stream = 0;  // random_streams.h
};

struct Philox4 {
  std::uint32_t word[4];
};

ZL_HOST_DEVICE constexpr Philox4 philox(std::uint64_t key, std::uint64_t counter_low,
                                        std::uint64_t counter_high) {
  std::uint32_t c0 = static_cast<std::uint32_t>(counter_low);
  std::uint32_t c1 = static_cast<std::uint32_t>(counter_low >> 32);
  std::uint32_t c2 = static_cast<std::uint32_t>(counter_high);
  std::uint32_t c3 = static_cast<std::uint32_t>(counter_high >> 32);
  std::uint32_t k0 = static_cast<std::uint32_t>(key);
  std::uint32_t k1 = static_cast<std::uint32_t>(key >> 32);
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t p0 = std::uint64_t{0xD2511F53u} * c0;
    const std::uint64_t p1 = std::uint64_t{0xCD9E8D57u} * c2;
    const std::uint32_t n0 = static_cast<std::uint32_t>(p1 >> 32) ^ c1 ^ k0;
    const std::uint32_t n2 = static_cast<std::uint32_t>(p0 >> 32) ^ c3 ^ k1;
    c1 = static_cast<std::uint32_t>(p1);
    c3 = static_cast<std::uint32_t>(p0);
    c0 = n0;
    c2 = n2;
    k0 += 0x9E3779B9u;
    k1 += 0xBB67AE85u;
  }
  return {{c0, c1, c2, c3}};
}

// 32 random bits for global element `index`.
ZL_HOST_DEVICE constexpr std::uint32_t random_bits(const RngKey& key, std::uint64_t index) {
  const std::uint64_t high = (std::uint64_t{key.stream} << 32) | key.step;
  return philox(key.seed, index >> 2, high).word[index & 3];
}

// Uniform in [0, 1) with 24 bits.
ZL_HOST_DEVICE constexpr float random_uniform(const RngKey& key, std::uint64_t index) {
  return static_cast<float>(random_bits(key, index) >> 8) * 0x1p-24f;
}

}  // namespace zl
