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
// Drawn tokens of generated text, with RngKey::step the number of the sequence.
inline constexpr std::uint32_t kGenerationStream = 0xffff'0002u;
// Which tokens are masked, and the order of an epoch's samples, with RngKey::step the epoch.
inline constexpr std::uint32_t kMaskStream = 0xffff'0003u;
inline constexpr std::uint32_t kOrderStream = 0xffff'0004u;
// Random blocks of attention's layouts, with RngKey::step the layer.
inline constexpr std::uint32_t kLayoutStream = 0xffff'0005u;

}  // namespace zl
