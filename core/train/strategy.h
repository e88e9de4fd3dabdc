// A training strategy: everything a DeepSpeed configuration can say that the engine honours.
// Defaults are DeepSpeed's (SPECS section 1) except where a comment says otherwise.
// Ownership: a value. Threads: immutable while a run uses it.
#pragma once

#include <cstdint>
#include <string>

#include "core/base/dtype.h"
#include "core/device/storage.h"

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

// What the one-bit optimizers add (SPECS 5); unused members are ignored by the other kinds.
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

// A tier of memory, fastest and smallest first.
enum class Tier : std::uint8_t { device, cpu, nvme };

// What leaves the device (ZeRO-Offload, Ren et al. 2021; ZeRO-Infinity, Rajbhandari et al. 2021).
// Names and defaults are DeepSpeed's; sizes count elements of this rank's shard.
struct OffloadConfig {
  Tier optimizer = Tier::device;   // stages 1-3: state, update and reduced gradients
  Tier parameters = Tier::device;  // stage 3: the weight shards
  bool activations = false;        // the kept inputs of recomputed blocks, to the host
  bool pin_memory = true;          // host memory that devices copy at full speed
  std::string nvme_path;           // folder of the file tier
  AioConfig aio;

  std::int64_t sub_group_size = 1'000'000'000;  // what one host update covers
  double ratio = 1.0;  // share of the sub-groups stepped on the host; the first ones stay
  std::int64_t optimizer_buffer_count = 4;  // nvme: of one tensor of the largest sub-group each
  bool pipeline_read = false, pipeline_write = false;
  // ZeRO-Offload's one-step delayed parameter update, from this step on (-1: never): the host
  // update of step i overlaps the forward and backward of step i + 1.
  std::int64_t delayed_update_after = -1;

  std::int64_t parameter_buffer_count = 5;  // nvme: buffers of parameter_buffer_size elements
  std::int64_t parameter_buffer_size = 100'000'000;
  std::int64_t max_in_cpu = 1'000'000'000;  // nvme: weights that stay in host memory all the same

  bool any() const {
    return optimizer != Tier::device || parameters != Tier::device || activations;
  }
  bool files() const { return optimizer == Tier::nvme || parameters == Tier::nvme; }
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
  // ZeRO++: what crosses the wire in blocks of signed bytes.
  bool quantized_weights = false;    // stage 3's gathers
  bool quantized_gradients = false;  // reduce-scatters (stages 1 to 3)
  LossScalerConfig loss_scaler;

  // Batch (per rank) and optimizer.
  std::int64_t micro_batch = 1;
  std::int64_t gradient_accumulation = 1;
  double gradient_clipping = 1.0;  // 0: off
  OptimizerConfig optimizer;
  ScheduleConfig schedule;
  RecomputeConfig recompute;
  OffloadConfig offload;
  // DeepSpeed updates the loss scale before unscaling (SPECS 2); for parity studies only.
  bool deepspeed_scale_order = false;
};

// Why the optimizer cannot run under the ZeRO stage, beginning with the stage; empty: it can.
std::string stage_conflict(const Strategy& strategy);

}  // namespace zl
