#include "scenarios/launch/megatron.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>

#include "scenarios/files/strategy_json.h"
#include "scenarios/launch/learning_rates.h"
#include "scenarios/launch/own_keys.h"

namespace zl {
namespace {

using Lines = std::vector<std::string>;

std::string argument(const std::string& flag, const Json& value) {
  return flag + " " + to_text(value);
}

// Megatron-LM's stages are equal; embedding and loss may count as a layer of theirs.
struct EqualCut {
  bool counts_embedding = false, counts_loss = false;
};

std::optional<EqualCut> equal_cut(const ModelConfig& model, const PipelineConfig& pipeline) {
  std::vector<std::int64_t> layers = layers_of_stages(model, pipeline);
  const std::int64_t most = *std::ranges::max_element(layers);
  const EqualCut cut{.counts_embedding = layers.front() + 1 == most,
                     .counts_loss = layers.back() + 1 == most};
  layers.front() += cut.counts_embedding ? 1 : 0;
  layers.back() += cut.counts_loss ? 1 : 0;
  const auto is_equal = [most](std::int64_t count) { return count == most; };
  return std::ranges::all_of(layers, is_equal) ? std::optional(cut) : std::nullopt;
}

// The same stages may be said in several ways.
void take_words_of_cut(const PipelineConfig& words, const ModelConfig& model,
                       PipelineConfig& pipeline) {
  if (layers_of_stages(model, words) != layers_of_stages(model, pipeline)) return;
  pipeline.layers_per_stage = words.layers_per_stage;
  pipeline.split = words.split;
}

void check_pipeline(const Strategy& strategy, const LaunchFacts& facts, Obstacles& obstacles) {
  const PipelineConfig& pipeline = strategy.pipeline;
  if (pipeline.ranks == 1) return;
  const bool has_it =
      pipeline.schedule == PipelineKind::one_f_one_b ||
      (pipeline.schedule == PipelineKind::interleaved && pipeline.virtual_stages > 1);
  if (!has_it) {
    obstacles.add(std::string("schedule ") + name_of(pipeline.schedule),
                  "Megatron-LM has 1f1b and, of two virtual stages on, interleaved",
                  "schedule=1f1b");
  }
  const std::int64_t stages = pipeline.ranks * pipeline.virtual_stages;
  if (!equal_cut(facts.model, pipeline)) {
    obstacles.add(
        std::to_string(facts.model.layers) + " layers over " + std::to_string(stages) + " stages",
        "without a --pipeline-model-parallel-layout of your own Megatron-LM cuts them "
        "into equal parts only, embedding and loss counted as a layer or not",
        "pipeline=1");
  }
  if (strategy.zero.stage >= 2) {
    obstacles.add("zero-" + std::to_string(strategy.zero.stage) + " under a pipeline",
                  "Megatron-FSDP does not reduce gradients of every micro-batch there", "zero=1");
  }
}

void check_tensor_overlap(const TensorConfig& tensor, Obstacles& obstacles) {
  if (!tensor.overlap || tensor.sequence_parallel) return;
  obstacles.add("tensor_overlap without sequence parallelism",
                "Megatron-LM's --tp-comm-overlap has both together", "sequence_parallel=true");
}

void check_recompute(const RecomputeConfig& recompute, Obstacles& obstacles) {
  if (recompute.mode == RecomputeMode::selective && !recompute.attention) {
    obstacles.add("recompute " + recompute_text(recompute),
                  "Megatron-LM's selective recomputation is that of attention",
                  "recompute=selective:attention");
  } else if (recompute.mode == RecomputeMode::selective && recompute.activation) {
    obstacles.add("recompute " + recompute_text(recompute),
                  "Megatron-LM recomputes a dense MLP as a whole, not its activation alone",
                  "recompute=selective:attention");
  }
  if (recompute.mode == RecomputeMode::automatic) {
    obstacles.add("recompute auto", "how many blocks is decided when zerolab runs",
                  "recompute=full");
  }
  if (!recompute.stage_blocks.empty()) {
    obstacles.add("recompute " + recompute_text(recompute),
                  "--recompute-num-layers is one number for all stages; --software megatron-core "
                  "plans with one",
                  "recompute=full");
  }
}

void check_megatron_offload(const Strategy& strategy, Obstacles& obstacles) {
  const OffloadConfig& offload = strategy.offload;
  if (!offload.any()) return;
  const bool has_it = strategy.zero.stage == 1 && offload.optimizer == Tier::cpu &&
                      offload.parameters == Tier::device && !offload.activations;
  if (has_it) return;
  obstacles.add("offload", "Megatron-LM offloads the optimizer's state of ZeRO-1 to the host only",
                "offload=none");
}

void check_optimizer(const Strategy& strategy, Obstacles& obstacles) {
  const OptimizerKind kind = strategy.optimizer.kind;
  if (kind != OptimizerKind::adamw && kind != OptimizerKind::sgd) {
    obstacles.add("the optimizer", "Megatron-LM has AdamW and SGD of those that zerolab has");
  }
  if (!learning_rates_of(strategy.schedule, strategy.optimizer)) {
    obstacles.add("scheduler",
                  "Megatron-LM's rates rise in a line, then stay, fall in a line or a cosine; give "
                  "WarmupLR, WarmupDecayLR or WarmupCosineLR with warmup_type linear");
  }
}

void add_cut(const EqualCut& cut, Lines& out) {
  if (cut.counts_embedding) out.emplace_back("--account-for-embedding-in-pipeline-split");
  if (cut.counts_loss) out.emplace_back("--account-for-loss-in-pipeline-split");
}

void add_mesh(const Strategy& strategy, const ModelConfig& model, Lines& out) {
  out.push_back(argument("--tensor-model-parallel-size", strategy.tensor.ranks));
  if (strategy.tensor.sequence_parallel) out.emplace_back("--sequence-parallel");
  if (strategy.tensor.overlap) out.emplace_back("--tp-comm-overlap");
  out.push_back(argument("--pipeline-model-parallel-size", strategy.pipeline.ranks));
  if (strategy.pipeline.virtual_stages > 1) {
    out.push_back(
        argument("--num-virtual-stages-per-pipeline-rank", strategy.pipeline.virtual_stages));
  }
  if (const auto cut = equal_cut(model, strategy.pipeline)) add_cut(*cut, out);
}

void add_zero(const ZeroConfig& zero, Lines& out) {
  if (zero.stage >= 1) out.emplace_back("--use-distributed-optimizer");
  if (zero.stage >= 2) {
    out.emplace_back("--use-megatron-fsdp");
    out.push_back("--data-parallel-sharding-strategy " +
                  std::string(zero.stage == 2 ? "optim_grads" : "optim_grads_params"));
    out.emplace_back("--ckpt-format fsdp_dtensor");
    out.emplace_back("--no-gradient-accumulation-fusion");
  }
  if (zero.replicas > 1) {
    out.push_back(argument("--num-distributed-optimizer-instances", zero.replicas));
  }
  if (!zero.overlap_comm) return;
  out.emplace_back("--overlap-grad-reduce");
  if (zero.stage >= 1) out.emplace_back("--overlap-param-gather");
  if (zero.stage <= 1) out.push_back(argument("--ddp-bucket-size", zero.reduce_bucket_size));
}

void add_recompute(const RecomputeConfig& recompute, Lines& out) {
  if (recompute.mode == RecomputeMode::selective) {
    out.emplace_back("--recompute-granularity selective");
    out.emplace_back("--recompute-modules core_attn");
  } else if (recompute.mode == RecomputeMode::full || recompute.mode == RecomputeMode::every_k) {
    out.emplace_back("--recompute-granularity full");
    out.emplace_back("--recompute-method uniform");
    const bool all = recompute.mode == RecomputeMode::full;
    out.push_back(argument("--recompute-num-layers", all ? 1 : recompute.every));
  } else if (recompute.mode == RecomputeMode::first_blocks) {
    out.emplace_back("--recompute-granularity full");
    out.emplace_back("--recompute-method block");
    out.push_back(argument("--recompute-num-layers", recompute.blocks));
  }
}

void add_precision(const Strategy& strategy, Lines& out) {
  const PrecisionConfig& precision = strategy.precision;
  const bool adds_in_fp32 = precision.grad_accum_dtype == DType::f32;
  if (precision.compute_dtype == DType::bf16) {
    out.emplace_back("--bf16");
    if (!adds_in_fp32) out.emplace_back("--grad-reduce-in-bf16");
  }
  if (precision.compute_dtype != DType::f16) return;
  out.emplace_back("--fp16");
  if (adds_in_fp32) out.emplace_back("--accumulate-allreduce-grads-in-fp32");
  const LossScalerConfig& scaler = strategy.loss_scaler;
  if (scaler.static_scale > 0) out.push_back(argument("--loss-scale", scaler.static_scale));
  out.push_back(argument("--initial-loss-scale", std::int64_t{1} << scaler.initial_scale_power));
  out.push_back(argument("--min-loss-scale", scaler.min_scale));
  out.push_back(argument("--loss-scale-window", scaler.window));
  out.push_back(argument("--hysteresis", scaler.hysteresis));
}

void add_rates(const LearningRates& rates, Lines& out) {
  using enum LearningRates::Way;
  const char* const style = rates.way == level  ? "constant"
                            : rates.way == line ? "linear"
                                                : "cosine";
  out.push_back(argument("--lr", rates.most));
  out.push_back(std::string("--lr-decay-style ") + style);
  if (rates.warmup > 0) out.push_back(argument("--lr-warmup-iters", rates.warmup));
  if (rates.first > 0) out.push_back(argument("--lr-warmup-init", rates.first));
  if (rates.way == level) return;
  out.push_back(argument("--lr-decay-iters", rates.steps));
  out.push_back(argument("--min-lr", rates.last));
}

void add_optimizer(const Strategy& strategy, Lines& out) {
  const OptimizerConfig& optimizer = strategy.optimizer;
  if (optimizer.kind == OptimizerKind::sgd) {
    out.emplace_back("--optimizer sgd");
    out.push_back(argument("--sgd-momentum", optimizer.momentum));
  } else {
    out.emplace_back("--optimizer adam");
    out.push_back(argument("--adam-beta1", optimizer.beta1));
    out.push_back(argument("--adam-beta2", optimizer.beta2));
    out.push_back(argument("--adam-eps", optimizer.epsilon));
  }
  add_rates(*learning_rates_of(strategy.schedule, optimizer), out);
  out.push_back(argument("--weight-decay", optimizer.weight_decay));
  out.push_back(argument("--clip-grad", strategy.gradient_clipping));
  if (!strategy.offload.any()) return;
  out.emplace_back("--optimizer-cpu-offload");
  out.push_back(argument("--optimizer-offload-fraction", strategy.offload.ratio));
  out.emplace_back("--use-precision-aware-optimizer");
}

std::string script(const Strategy& strategy, const LaunchFacts& facts, const Lines& lines,
                   const std::string& comment) {
  // Megatron-LM asks for one connection under a tensor group, Megatron-FSDP for more.
  const char* connections = strategy.zero.stage >= 2 ? "32" : "1";
  std::string text =
      "#!/bin/bash\n# Megatron-LM (megatron-core 0.16): " +
      in_comment(strategy.name + ", " + facts.model.name) + " on " + std::to_string(facts.ranks) +
      " GPUs.\n# Data, tokenizer and --train-iters are arguments of this script.\n" + comment +
      "export CUDA_DEVICE_MAX_CONNECTIONS=" + connections +
      "\nGPUS_PER_NODE=" + std::to_string(std::min(facts.ranks, facts.node_devices)) +
      "\nNODES=" + std::to_string(facts.nodes()) + "\n\nARGS=(\n";
  for (const std::string& line : lines) text += "    " + line + "\n";
  return text +
         ")\n\ntorchrun --nproc-per-node \"$GPUS_PER_NODE\" --nnodes \"$NODES\" \\\n"
         "    --node-rank \"${NODE_RANK:-0}\" --master-addr \"${MASTER_ADDR:-localhost}\" \\\n"
         "    pretrain_gpt.py \"${ARGS[@]}\" \"$@\"\n";
}

}  // namespace

LaunchFile write_megatron(const Strategy& strategy, const LaunchFacts& facts) {
  Obstacles obstacles("megatron");
  check_pipeline(strategy, facts, obstacles);
  check_tensor_overlap(strategy.tensor, obstacles);
  check_recompute(strategy.recompute, obstacles);
  check_megatron_offload(strategy, obstacles);
  check_optimizer(strategy, obstacles);
  obstacles.throw_if_any();
  LaunchFile file;
  Lines lines;
  add_mesh(strategy, facts.model, lines);
  lines.push_back(argument("--micro-batch-size", strategy.micro_batch));
  lines.push_back(argument("--global-batch-size", facts.global_batch(strategy)));
  add_zero(strategy.zero, lines);
  add_recompute(strategy.recompute, lines);
  add_precision(strategy, lines);
  add_optimizer(strategy, lines);
  const Lines of_model = megatron_model_arguments(facts, file.notes);
  lines.insert(lines.end(), of_model.begin(), of_model.end());
  Strategy back = import_megatron(script(strategy, facts, lines, ""), "-o megatron",
                                  {.ranks = facts.ranks, .model = &facts.model})
                      .strategy;
  take_words_of_cut(strategy.pipeline, facts.model, back.pipeline);
  const Json own = own_keys(strategy, back, facts.data_ranks(strategy), obstacles);
  obstacles.throw_if_any();
  file.text = script(strategy, facts, lines, own_comment(own));
  return file;
}

}  // namespace zl
