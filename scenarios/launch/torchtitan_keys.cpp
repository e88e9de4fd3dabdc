#include "scenarios/launch/torchtitan_keys.h"

namespace zl {
namespace {

using Fate = ForeignGroup::Fate;

constexpr ForeignGroup kTorchtitanGroups[] = {
    {Fate::applied,
     "training.local_batch_size training.global_batch_size training.max_norm "
     "training.enable_cpu_offload training.mixed_precision_param training.mixed_precision_reduce "
     "training.dtype parallelism.data_parallel_replicate_degree "
     "parallelism.data_parallel_shard_degree parallelism.fsdp_reshard_after_forward "
     "parallelism.tensor_parallel_degree parallelism.enable_sequence_parallel "
     "parallelism.pipeline_parallel_degree "
     "parallelism.pipeline_parallel_layers_per_stage parallelism.pipeline_parallel_schedule "
     "parallelism.pipeline_parallel_microbatch_size "
     "parallelism.pipeline_parallel_first_stage_less_layers "
     "parallelism.pipeline_parallel_last_stage_less_layers activation_checkpoint.mode "
     "activation_checkpoint.selective_ac_option optimizer.name optimizer.lr optimizer.beta1 "
     "optimizer.beta2 optimizer.eps optimizer.weight_decay lr_scheduler.warmup_steps "
     "lr_scheduler.decay_ratio lr_scheduler.total_steps lr_scheduler.decay_type "
     "lr_scheduler.min_lr_factor lr_scheduler.lr_min training.steps",
     ""},
    {Fate::of_model, "model.name model.flavor model.*", "of the model, which --model says"},
    {Fate::moot, "training.seq_len training.seed training.deterministic",
     "of the run, which its own options say"},
    {Fate::moot,
     "training.compile compile.* optimizer.implementation training.gc_freq training.gc_debug "
     "parallelism.disable_loss_parallel parallelism.enable_async_tensor_parallel "
     "parallelism.enable_compiled_autograd activation_checkpoint.early_stop "
     "activation_checkpoint.per_op_sac_force_recompute_mm_shapes_by_fqns "
     "activation_checkpoint.preserve_rng_state activation_checkpoint.determinism_check "
     "activation_checkpoint.debug activation_checkpoint.memory_budget "
     "activation_checkpoint.visualize_memory_budget_pareto "
     "parallelism.context_parallel_rotate_method parallelism.context_parallel_load_balancer "
     "parallelism.expert_parallel_comm_backend "
     "parallelism.pipeline_parallel_expert_parallel_overlap",
     "how the same is computed and sent; the profile of --software says how fast"},
    {Fate::moot,
     "job.* profiling.* metrics.* checkpoint.* comm.* debug.* validation.* experimental.* "
     "fault_tolerance.* memory_estimation.* training.dataset training.dataset_path "
     "training.dataloader.*",
     "data, checkpoints and logs; zerolab has its own"},
    {Fate::not_implemented,
     "parallelism.context_parallel_degree parallelism.expert_parallel_degree "
     "parallelism.expert_tensor_parallel_degree",
     "parallelism over the sequence or the experts"},
    {Fate::not_implemented,
     "parallelism.module_fqns_per_model_part parallelism.pipeline_parallel_split_points",
     "stages by the names of modules; write x-zerolab.parallel.layers_per_stage into a strategy",
     "[] null"},
    {Fate::not_implemented, "parallelism.pipeline_parallel_schedule_csv",
     "a schedule in a file of its own", " "},
    {Fate::not_implemented, "optimizer.early_step_in_backward", "updates during the backward"},
    {Fate::not_implemented, "float8.* mx.* quantize.*", "eight bit numbers"},
};

}  // namespace

std::span<const ForeignGroup> torchtitan_groups() { return kTorchtitanGroups; }

}  // namespace zl
