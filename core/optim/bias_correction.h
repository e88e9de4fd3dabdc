// Adam's bias correction (Kingma & Ba 2015), of which some variants do without.
// Ownership: none. Threads: pure.
#pragma once

#include <cmath>

#include "core/optim/optimizer_config.h"

namespace zl {

// 1 - beta^steps from a double pow; 1 without correction.
inline float bias_of(const OptimizerConfig& config, double beta, std::int64_t steps) {
  if (!config.bias_correction) return 1.0f;
  return static_cast<float>(1.0 - std::pow(beta, static_cast<double>(steps)));
}

inline OptimizerConfig without_bias_correction(OptimizerConfig config) {
  config.bias_correction = false;
  return config;
}

}  // namespace zl
