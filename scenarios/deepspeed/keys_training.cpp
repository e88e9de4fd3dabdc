#include "scenarios/deepspeed/key_rows.h"

namespace zl {
namespace {

using namespace rows;

// Their product with the largest world still fits 64 bits.
constexpr double kBatchLimit = 1e6;
constexpr auto kPrecision =
    "where a file says neither fp16 nor bf16, a run takes bf16 or fp16, what its cluster's devices "
    "have, or fp32";
constexpr auto kDTypes = "fp32|fp16|bf16|float32|float16|bfloat16";

constexpr KeySpec kRows[] = {
    // Batch
    applied("train_batch_size", integer, "null").at_least(1).at_most(1e12),
    applied("train_micro_batch_size_per_gpu", integer, "null").at_least(1).at_most(kBatchLimit),
    applied("gradient_accumulation_steps", integer, "null").at_least(1).at_most(kBatchLimit),
    moot("eval_micro_batch_size_per_gpu", integer, "zerolab only trains"),

    // Gradients
    applied("gradient_clipping", number, "1.0",
            "global norm; 0 turns it off, and was DeepSpeed's default before 0.19.3")
        .at_least(0),
    applied("prescale_gradients", boolean, "false"),
    applied("gradient_predivide_factor", number, "1.0").above(0),
    applied("gradient_allreduce_op", text, "\"mean\"").one_of("mean|sum"),
    applied("communication_data_type", text | null, "null", "the gradients' accumulation type")
        .one_of(kDTypes),
    applied("data_types.grad_accum_dtype", text | null, "null",
            "fp32; DeepSpeed would accumulate in the model's type")
        .one_of(kDTypes),
    moot("data_types.param_dtype", text | null, "the type that fp16 or bf16 enables")
        .one_of(kDTypes),
    fixed("sparse_gradients", boolean, "false", warn, "embedding gradients are exchanged dense"),
    ignored("max_grad_norm", "write gradient_clipping"),
    applied("gradient_checkpointing", boolean, "false"),

    // Precision
    applied("fp16.enabled", boolean, "false", kPrecision),
    applied("fp16.loss_scale", number, "0", "0 is dynamic").at_least(0).at_most(1e38),
    applied("fp16.initial_scale_power", integer, "16").at_least(0).at_most(60),
    applied("fp16.loss_scale_window", integer, "1000").at_least(1),
    applied("fp16.hysteresis", integer, "2").at_least(0),
    applied("fp16.consecutive_hysteresis", boolean, "false"),
    applied("fp16.min_loss_scale", number, "1").at_least(0),
    moot("fp16.auto_cast", boolean, "the model's inputs are token ids, nothing to cast"),
    fixed("fp16.fp16_master_weights_and_grads", boolean, "false", refuse,
          "master weights are always fp32"),
    rejected("fp16.dynamic_loss_scale", "not a DeepSpeed key; loss_scale 0 is dynamic"),
    applied("bf16.enabled", boolean, "false", kPrecision),
    moot("bf16.auto_cast", boolean, "the model's inputs are token ids, nothing to cast"),
    fixed("bf16.immediate_grad_update", boolean, "false", quiet,
          "gradients are accumulated when their bucket is reduced"),
    fixed("bf16.check_grad_overflow", boolean, "true", quiet,
          "NaN and infinity are always checked, on all ranks alike"),
    fixed("bf16.bf16_master_weights_and_grads", boolean, "false", refuse,
          "master weights are always fp32"),
    fixed("bf16.bf16_optimizer_states", boolean, "false", refuse,
          "optimizer states are always fp32"),
    fixed("amp.enabled", boolean, "false", refuse, "use fp16 or bf16 instead of apex"),
    detail("amp.opt_level", text),
    detail("amp.loss_scale"),
    detail("amp.*"),
    fixed("int8.enabled", boolean, "false", refuse, "8-bit training does not exist in zerolab"),
    detail("int8.*"),

    // Optimizer. Which parameters a type takes is checked in deepspeed_optimizer.cpp.
    applied("optimizer.type", text, "\"AdamW\""),
    applied("optimizer.params.lr", number, "1e-3").at_least(0),
    applied("optimizer.params.betas", list, "[0.9, 0.999]"),
    applied("optimizer.params.eps", number, "1e-8").at_least(0),
    applied("optimizer.params.weight_decay", number, "0.0").at_least(0),
    applied("optimizer.params.bias_correction", boolean, "true"),
    applied("optimizer.params.adam_w_mode", boolean, "true"),
    applied("optimizer.params.momentum", number, "0.0").at_least(0).at_most(1),
    applied("optimizer.params.nesterov", boolean, "false"),
    applied("optimizer.params.max_coeff", number, "10.0").above(0),
    applied("optimizer.params.min_coeff", number, "0.01").at_least(0),
    fixed("optimizer.params.amsgrad", boolean, "false", refuse, "AMSGrad does not exist here"),
    fixed("optimizer.params.dampening", number, "0", refuse, "momentum is never dampened"),
    fixed("optimizer.params.maximize", boolean, "false", refuse, "the loss is minimised"),
    moot("optimizer.params.torch_adam", boolean, "chooses an implementation, not the maths"),
    moot("optimizer.params.fused", boolean, "chooses an implementation, not the maths"),
    moot("optimizer.params.foreach", boolean, "chooses an implementation, not the maths"),
    moot("optimizer.params.use_triton", boolean, "chooses an implementation, not the maths"),
    moot("optimizer.params.eps_inside_sqrt", boolean, "DeepSpeed does not use it either"),
    applied("optimizer.params.freeze_step", integer, "100000").at_least(1),
    moot("optimizer.params.cuda_aware", boolean, "collectives go through the run's own backend"),
    moot("optimizer.params.comm_backend_name", text,
         "collectives go through the run's own backend"),
    applied("optimizer.params.coeff_beta", number, "0.9").at_least(0).at_most(1),
    applied("optimizer.params.factor_max", number, "4.0").above(0),
    applied("optimizer.params.factor_min", number, "0.5").at_least(0),
    applied("optimizer.params.factor_threshold", number, "0.1").at_least(0),
    applied("optimizer.params.var_freeze_step", integer, "100000").at_least(1),
    applied("optimizer.params.var_update_scaler", integer, "16").at_least(1),
    applied("optimizer.params.local_step_scaler", integer, "32678").at_least(1),
    applied("optimizer.params.local_step_clipper", integer, "16").at_least(1),
    rejected("optimizer.params.max_grad_norm", "write gradient_clipping at the top level"),
    moot("optimizer.legacy_fusion", boolean, "chooses an implementation, not the maths"),
    ignored("optimizer.eps", "write optimizer.params.eps"),
    ignored("optimizer.weight_decay", "write optimizer.params.weight_decay"),
    ignored("optimizer.adam_w_mode", "write optimizer.params.adam_w_mode"),
    moot("zero_allow_untested_optimizer", boolean, "every optimizer here is tested with ZeRO"),
    moot("zero_force_ds_cpu_optimizer", boolean, "only matters with CPU offload"),
    moot("disable_fused_adam", boolean, "chooses an implementation, not the maths"),

    // Learning rate schedule. Which parameters a type takes is checked in deepspeed_schedule.cpp.
    applied("scheduler.type", text, "null", "constant learning rate"),
    applied("scheduler.params.warmup_min_lr", number, "0").at_least(0),
    applied("scheduler.params.warmup_max_lr", number | null, "1e-3").at_least(0),
    applied("scheduler.params.warmup_num_steps", integer, "1000").at_least(0),
    applied("scheduler.params.warmup_type", text, "\"log\"").one_of("log|linear"),
    applied("scheduler.params.total_num_steps", integer, "null").at_least(1),
    applied("scheduler.params.warmup_min_ratio", number, "0").at_least(0).at_most(1),
    applied("scheduler.params.cos_min_ratio", number, "1e-4").at_least(0).at_most(1),
    applied("scheduler.params.cycle_min_lr", number, "null").at_least(0),
    applied("scheduler.params.cycle_max_lr", number, "null").at_least(0),
    applied("scheduler.params.decay_lr_rate", number, "0").at_least(0),
    applied("scheduler.params.cycle_first_step_size", integer, "2000").at_least(1),
    applied("scheduler.params.cycle_second_step_size", integer | null, "null", "equal to the first")
        .at_least(1),
    applied("scheduler.params.decay_step_size", integer, "0").at_least(0),
    applied("scheduler.params.cycle_momentum", boolean, "true"),
    applied("scheduler.params.cycle_min_mom", number, "0.8").at_least(0).at_most(1),
    applied("scheduler.params.cycle_max_mom", number, "0.9").at_least(0).at_most(1),
    applied("scheduler.params.decay_mom_rate", number, "0").at_least(0),
    applied("scheduler.params.lr_range_test_min_lr", number, "1e-3").at_least(0),
    applied("scheduler.params.lr_range_test_step_size", integer, "2000").at_least(1),
    applied("scheduler.params.lr_range_test_step_rate", number, "1.0").at_least(0),
    applied("scheduler.params.lr_range_test_staircase", boolean, "false"),
    applied("scheduler.params.gamma", number, "null", "ExponentialLR's").at_least(0),
    applied("scheduler.params.cycle_first_stair_count", integer, "0", "no stairs").at_least(0),
    applied("scheduler.params.cycle_second_stair_count", integer | null, "null",
            "equal to the first")
        .at_least(0),
    fixed("scheduler.params.last_batch_iteration", integer, "-1", refuse,
          "a run starts at its first step"),
    applied("scheduler.params.T_max", number, "null", "CosineAnnealingLR's"),
    applied("scheduler.params.eta_min", number, "null", "CosineAnnealingLR's"),
    ignored("lr_scheduler.type", "write scheduler"),
    ignored("lr_scheduler.params.*", "write scheduler.params"),

    // zerolab's own
    applied("x-zerolab.name", text, "null"),
    moot("x-zerolab.launch.*", any, "what `zerolab plan -o deepspeed` says of its launch"),
    applied("x-zerolab.deepspeed_version", text, "\"0.19.8\""),
    applied("x-zerolab.recompute", text, "\"none\""),
    applied("x-zerolab.parallel.tensor", integer, "1").at_least(1).at_most(kMeshLimit),
    applied("x-zerolab.parallel.sequence_parallel", boolean, "false"),
    applied("x-zerolab.parallel.tensor_overlap", boolean, "false"),
    applied("x-zerolab.parallel.replicate", integer, "1").at_least(1).at_most(kMeshLimit),
    applied("x-zerolab.parallel.pipeline", integer, "1").at_least(1).at_most(kMeshLimit),
    applied("x-zerolab.parallel.virtual_stages", integer, "1").at_least(1).at_most(kMeshLimit),
    applied("x-zerolab.parallel.schedule", text, "\"1f1b\""),
    applied("x-zerolab.parallel.layers_per_stage", list | text | null, "null", "even"),
    applied("x-zerolab.tied_gradient", text, "\"together\"").one_of("together|separate"),
    applied("x-zerolab.delayed_param_update", integer | null, "null").at_least(0),
    applied("x-zerolab.stochastic_rounding", boolean, "false"),
    applied("x-zerolab.deepspeed_scale_order", boolean, "false"),
    applied("x-zerolab.deepspeed_compat", boolean, "false"),
    applied("x-zerolab.automatic_freeze", boolean, "false"),
    applied("x-zerolab.variance_stability", number, "0.96").above(0).at_most(1),
};

}  // namespace

std::span<const KeySpec> training_keys() { return kRows; }

}  // namespace zl
