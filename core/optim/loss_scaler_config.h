// How the loss of fp16 training is scaled. Names and defaults are DeepSpeed's
// (runtime/fp16/loss_scaler.py). Ownership: a value. Threads: immutable while a run uses it.
#pragma once

#include <cstdint>

namespace zl {

struct LossScalerConfig {
  double static_scale = 0.0;  // > 0: static
  std::int64_t initial_scale_power = 16;
  std::int64_t window = 1000;
  std::int64_t hysteresis = 2;  // 0: the scale never falls
  bool consecutive_hysteresis = false;
  double min_scale = 1.0;

  bool operator==(const LossScalerConfig&) const = default;
};

}  // namespace zl
