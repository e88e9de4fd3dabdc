#include "scenarios/launch/accelerate_launch.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "scenarios/files/strategy_json.h"
#include "scenarios/launch/obstacles.h"
#include "scenarios/launch/own_keys.h"

namespace zl {
namespace {

bool offloads_all(const Strategy& strategy) {
  const OffloadConfig& offload = strategy.offload;
  return strategy.zero.stage == 3 && offload.optimizer == Tier::cpu &&
         offload.parameters == Tier::cpu && !offload.activations;
}

void check_accelerate(const Strategy& strategy, Obstacles& obstacles) {
  if (strategy.tensor.ranks > 1) {
    obstacles.add("tensor parallelism",
                  "accelerate leaves it to the model's own tp_plan, which "
                  "cuts neither vocabulary nor sequences as the plan does",
                  "tensor=1");
  }
  if (strategy.pipeline.ranks > 1) {
    obstacles.add("a pipeline", "accelerate trains with none", "pipeline=1");
  }
  if (strategy.zero.stage == 1) {
    obstacles.add("zero-1", "FSDP2 shards gradients too", "zero>=2");
  }
  if (strategy.offload.any() && !offloads_all(strategy)) {
    obstacles.add("offload", "FSDP2 offloads weights, gradients and states of ZeRO-3 together",
                  "offload=none");
  }
  const RecomputeMode mode = strategy.recompute.mode;
  if (mode != RecomputeMode::none && mode != RecomputeMode::full) {
    obstacles.add("recompute " + recompute_text(strategy.recompute),
                  "FSDP2's plugin checkpoints whole layers", "recompute=full");
  }
}

const char* yes(bool value) { return value ? "true" : "false"; }

std::string mixed_precision(const Strategy& strategy) {
  const DType type = strategy.precision.compute_dtype;
  return type == DType::bf16 ? "bf16" : type == DType::f16 ? "fp16" : "'no'";
}

// What the program says, not the file.
std::string program_comment(const Strategy& strategy, const LaunchFacts& facts) {
  const OptimizerConfig& optimizer = strategy.optimizer;
  return "# The program sets: per_device_train_batch_size " + std::to_string(strategy.micro_batch) +
         ", gradient_accumulation_steps " + std::to_string(strategy.gradient_accumulation) +
         ", sequences of " + std::to_string(facts.sequence_length) + ",\n# learning rate " +
         to_text(optimizer.lr) + ", betas " + to_text(optimizer.beta1) + " and " +
         to_text(optimizer.beta2) + ", eps " + to_text(optimizer.epsilon) + ", weight decay " +
         to_text(optimizer.weight_decay) + ", max_grad_norm " +
         to_text(strategy.gradient_clipping) + ".\n";
}

std::string fsdp_section(const Strategy& strategy) {
  return std::string(
             "fsdp_config:\n  fsdp_version: 2\n  fsdp_auto_wrap_policy: "
             "TRANSFORMER_BASED_WRAP\n  fsdp_reshard_after_forward: ") +
         yes(strategy.zero.stage == 3) + "\n  fsdp_offload_params: " + yes(strategy.offload.any()) +
         "\n  fsdp_activation_checkpointing: " +
         yes(strategy.recompute.mode == RecomputeMode::full) +
         "\n  fsdp_cpu_ram_efficient_loading: true\n"
         "  fsdp_state_dict_type: SHARDED_STATE_DICT\n";
}

void add_notes(const Strategy& strategy, const LaunchFacts& facts, LaunchFile& file) {
  file.notes.emplace_back(
      "accelerate's file has no batch and no optimizer: the program sets what "
      "its first comment says");
  const bool is_16 = strategy.precision.compute_dtype != DType::f32;
  if (is_16 && strategy.zero.stage > 0 && strategy.precision.grad_accum_dtype == DType::f32) {
    file.notes.emplace_back(
        "accelerate reduces gradients in 16 bits unless the program's "
        "FullyShardedDataParallelPlugin has a mixed_precision_policy with "
        "reduce_dtype float32");
  }
  if (strategy.zero.stage == 0 && strategy.recompute.mode == RecomputeMode::full) {
    file.notes.emplace_back("under DDP the program calls model.gradient_checkpointing_enable()");
  }
  if (facts.nodes() > 1) {
    file.notes.emplace_back("each machine gives --machine_rank and --main_process_ip");
  }
}

}  // namespace

LaunchFile write_accelerate(const Strategy& strategy, const LaunchFacts& facts) {
  Obstacles obstacles("accelerate");
  check_accelerate(strategy, obstacles);
  obstacles.throw_if_any();
  const bool shards = strategy.zero.stage > 0;
  LaunchFile file;
  file.text = "# accelerate 1.15, accelerate launch --config_file THIS: " +
              in_comment(strategy.name + ", " + facts.model.name) + " on " +
              std::to_string(facts.ranks) + " GPUs.\n" + program_comment(strategy, facts) +
              "compute_environment: LOCAL_MACHINE\ndebug: false\ndistributed_type: " +
              (shards            ? "FSDP"
               : facts.ranks > 1 ? "MULTI_GPU"
                                 : "'NO'") +
              "\ndowncast_bf16: 'no'\n" + (shards ? fsdp_section(strategy) : "") +
              "machine_rank: 0\nmain_training_function: main\nmixed_precision: " +
              mixed_precision(strategy) + "\nnum_machines: " + std::to_string(facts.nodes()) +
              "\nnum_processes: " + std::to_string(facts.ranks) + "\n";
  if (strategy.zero.replicas > 1) {
    file.text += "parallelism_config:\n  parallelism_config_dp_replicate_size: " +
                 std::to_string(strategy.zero.replicas) + "\n  parallelism_config_dp_shard_size: " +
                 std::to_string(facts.ranks / strategy.zero.replicas) + "\n";
  }
  file.text += "rdzv_backend: static\nsame_network: true\nuse_cpu: false\n";
  add_notes(strategy, facts, file);
  return file;
}

}  // namespace zl
