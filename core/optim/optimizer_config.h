// Which optimizer, with what hyper-parameters. Defaults are DeepSpeed's.
// Ownership: values. Threads: immutable while a run uses them.
#pragma once

#include <cstdint>

namespace zl {

enum class OptimizerKind : std::uint8_t {
  adamw,
  adam,
  lamb,
  sgd,
  onebit_adam,
  zero_one_adam,
  onebit_lamb
};
// Exchange momenta of one bit an element after a warm-up.
constexpr bool is_onebit(OptimizerKind kind) { return kind >= OptimizerKind::onebit_adam; }

// What the one-bit optimizers add; unused members are ignored by the other kinds.
struct OnebitConfig {
  // 1-bit Adam and LAMB: this many updates with averaged gradients, then compression.
  std::int64_t freeze_step = 100'000;
  // 1-bit Adam: freeze earlier, when the second moment's 1-norm over 1 / (1 - beta2) steps has
  // changed by less than a factor of variance_stability.
  bool automatic_freeze = false;
  double variance_stability = 0.96;
  bool deepspeed_compat = false;  // no bias correction; the first gradient is dropped
  // 0/1 Adam.
  std::int64_t var_freeze_step = 100'000;
  std::int64_t var_update_scaler = 16;
  std::int64_t local_step_scaler = 32'678;
  std::int64_t local_step_clipper = 16;
  // 1-bit LAMB.
  double coeff_beta = 0.9;
  double factor_max = 4.0, factor_min = 0.5, factor_threshold = 0.1;

  bool operator==(const OnebitConfig&) const = default;
};

struct OptimizerConfig {
  OptimizerKind kind = OptimizerKind::adamw;
  double lr = 1e-3;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double epsilon = 1e-8;
  double weight_decay = 0.0;
  double momentum = 0.0;  // sgd
  bool nesterov = false;  // sgd
  bool bias_correction = true;
  double lamb_min_trust = 0.01;  // LAMB: clamp of the trust ratio (DeepSpeed min_coeff)
  double lamb_max_trust = 10.0;  // (DeepSpeed max_coeff)
  OnebitConfig onebit;

  bool operator==(const OptimizerConfig&) const = default;
};

}  // namespace zl
