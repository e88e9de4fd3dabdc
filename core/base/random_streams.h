// Who draws random numbers, and under which RngKey::stream: one list, so that no two share one.
// Ownership: none. Threads: constants.
#pragma once

#include <cstdint>

namespace zl {

// Initial weights, with RngKey::step 0, which no dropout has.
constexpr std::uint32_t weights_stream(int parameter) {
  return static_cast<std::uint32_t>(parameter);
}

// Dropout, with RngKey::step from 1 on: up to 16 sites a unit.
constexpr std::uint32_t dropout_stream(int unit, std::uint32_t site) {
  return static_cast<std::uint32_t>(unit) * 16 + site;
}

// Stochastic rounding of updated weights: the high bit tells it from dropout.
constexpr std::uint32_t rounding_stream(int parameter) {
  return 0x80000000u | static_cast<std::uint32_t>(parameter);
}

// Training samples and synthetic tokens: beyond all units and parameters.
inline constexpr std::uint32_t kSampleStream = 0xffff'0000u;
inline constexpr std::uint32_t kSyntheticStream = 0xffff'0001u;

}  // namespace zl
