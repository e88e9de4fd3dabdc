// A training strategy: everything a DeepSpeed configuration can say that the engine honours.
// Defaults are DeepSpeed's (SPECS section 1) except where a comment says otherwise.
// Ownership: a value. Threads: immutable while a run uses it.
#pragma once

#include <cstdint>
#include <string>

#include "core/base/dtype.h"

namespace zl {

enum class OptimizerKind : std::uint8_t { adamw, adam, lamb, sgd };

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
};

enum class ScheduleKind : std::uint8_t {
  constant,
  warmup_lr,
  warmup_decay_lr,
  warmup_cosine_lr,
  one_cycle,
  lr_range_test
};

// Parameters of every schedule of SPECS 1.6; unused ones are ignored by the other kinds.
struct ScheduleConfig {
  ScheduleKind kind = ScheduleKind::constant;
  double warmup_min_lr = 0.0;
  double warmup_max_lr = 1e-3;
  std::int64_t warmup_num_steps = 1000;
  bool warmup_log = true;  // warmup_type log | linear
  std::int64_t total_num_steps = 0;
  double warmup_min_ratio = 0.0;
  double cos_min_ratio = 1e-4;
  double cycle_min_lr = 0.0;
  double cycle_max_lr = 0.0;
  double decay_lr_rate = 0.0;
  std::int64_t cycle_first_step_size = 2000;
  std::int64_t cycle_second_step_size = 0;  // 0: equal to the first
  std::int64_t decay_step_size = 0;
  bool cycle_momentum = true;
  double cycle_min_mom = 0.8;
  double cycle_max_mom = 0.9;
  double decay_mom_rate = 0.0;
  double lr_range_test_min_lr = 1e-3;
  std::int64_t lr_range_test_step_size = 2000;
  double lr_range_test_step_rate = 1.0;
  bool lr_range_test_staircase = false;
};

struct LossScalerConfig {
  double static_scale = 0.0;  // > 0: static
  std::int64_t initial_scale_power = 16;
  std::int64_t window = 1000;
  std::int64_t hysteresis = 2;
  bool consecutive_hysteresis = false;
  double min_scale = 1.0;
};

enum class RecomputeMode : std::uint8_t { none, full, every_k, selective, automatic };

struct RecomputeConfig {
  RecomputeMode mode = RecomputeMode::none;
  std::int64_t every = 1;   // every_k: one kept input per `every` blocks; the group is recomputed
  bool attention = false;   // selective: recompute the attention core from q, k, v
  bool activation = false;  // selective: recompute the MLP activation from its input
  std::int64_t blocks =
      0;  // automatic: filled in by the planner, the first `blocks` are recomputed
};

struct Strategy {
  std::string name = "zero-0";

  // ZeRO. Sizes count elements.
  int zero_stage = 0;
  bool overlap_comm = false;  // DeepSpeed: null -> true only for stage 3
  std::int64_t reduce_bucket_size = 500'000'000;
  std::int64_t prefetch_bucket_size = 50'000'000;
  std::int64_t param_persistence_threshold = 100'000;
  std::int64_t model_persistence_threshold = INT64_MAX;
  std::int64_t max_live_parameters = 1'000'000'000;
  // A unit whose next use lies within this many elements stays gathered. 0: the textbook schedule,
  // one gather for the forward and one for the backward of every unit (3 Psi in total).
  std::int64_t max_reuse_distance = 1'000'000'000;

  // Precision.
  DType compute_dtype = DType::f32;     // f32 | bf16 | f16; masters are always f32
  bool stochastic_rounding = false;     // of bf16 weights from their masters (Adam and AdamW)
  DType grad_accum_dtype = DType::f32;  // DeepSpeed: model dtype (SPECS 1.3 advice: f32)
  // What crosses the wire for gradients; by default grad_accum_dtype.
  DType communication_dtype = DType::f32;
  bool prescale_gradients = false;
  double gradient_predivide_factor = 1.0;
  bool sum_gradients = false;  // gradient_allreduce_op: sum
  LossScalerConfig loss_scaler;

  // Batch (per rank) and optimizer.
  std::int64_t micro_batch = 1;
  std::int64_t gradient_accumulation = 1;
  double gradient_clipping = 1.0;  // 0: off
  OptimizerConfig optimizer;
  ScheduleConfig schedule;
  RecomputeConfig recompute;
  // DeepSpeed updates the loss scale before unscaling (SPECS 2); for parity studies only.
  bool deepspeed_scale_order = false;
};

}  // namespace zl
