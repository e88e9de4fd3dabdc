// The loss scale of fp16 training: static, or dynamic with hysteresis.
// Ownership: copies its configuration. Threads: not shared; every rank updates its own copy with
// the same (agreed) overflow flag.
#pragma once

#include <cstdint>

#include "core/optim/loss_scaler_config.h"

namespace zl {

// DeepSpeed's dynamic loss scaler (deepspeed/runtime/fp16/loss_scaler.py): it halves when
// overflows have used up the hysteresis and doubles after `window` good steps, without upper cap.
class LossScaler {
 public:
  // What a checkpoint must keep.
  struct State {
    double scale = 1.0;
    std::int64_t hysteresis_left = 1;
    std::int64_t last_overflow = -1;
    std::int64_t iteration = 0;
  };

  // Not `dynamic`: static_scale when given, else 1 (fp32 and bf16 need no scale).
  // Throws Error{invalid} naming the fp16 key and its value when a value is out of range.
  LossScaler(const LossScalerConfig& config, bool dynamic);

  // Multiplies the loss of the coming step.
  double scale() const { return state_.scale; }

  // After every step, skipped or not. Throws Error{failed} and changes nothing when the scale
  // would have to fall below min_scale.
  void update(bool overflow);

  const State& state() const { return state_; }
  void restore(const State& state) { state_ = state; }

 private:
  void shrink();

  LossScalerConfig config_;
  bool dynamic_;
  State state_;
};

}  // namespace zl
