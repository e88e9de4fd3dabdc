#include "scenarios/launch/torchtitan.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>

#include "scenarios/files/strategy_json.h"
#include "scenarios/launch/learning_rates.h"
#include "scenarios/launch/own_keys.h"
#include "scenarios/launch/torchtitan_terms.h"

namespace zl {
namespace {

using Settings = std::vector<TorchtitanSetting>;

class TorchtitanWriter {
 public:
  TorchtitanWriter(const Strategy& strategy, const LaunchFacts& facts, bool is_python,
                   Obstacles& obstacles)
      : strategy_(strategy),
        facts_(facts),
        is_python_(is_python),
        data_(facts.data_ranks(strategy)),
        rates_(learning_rates_of(strategy.schedule, strategy.optimizer)),
        obstacles_(obstacles) {}

  Settings write() {
    write_training();
    write_precision();
    write_data_parallel();
    write_tensor();
    if (strategy_.pipeline.ranks > 1) write_pipeline();
    write_recompute();
    write_optimizer();
    return std::move(out_);
  }

 private:
  bool has_pipeline() const { return strategy_.pipeline.ranks > 1; }
  void set(const char* section, const char* key, Json value) {
    out_.push_back({section, key, std::move(value)});
  }

  void write_training() {
    const std::int64_t micro = strategy_.micro_batch;
    set("training", "local_batch_size",
        has_pipeline() ? micro * strategy_.gradient_accumulation : micro);
    set("training", "global_batch_size", facts_.global_batch(strategy_));
    set("training", "seq_len", facts_.sequence_length);
    set("training", "max_norm", strategy_.gradient_clipping);
    if (rates_ && rates_->way != LearningRates::Way::level) {
      set("training", "steps", rates_->steps);
    }
    const OffloadConfig& offload = strategy_.offload;
    if (!offload.any()) return;
    const bool all = strategy_.zero.stage == 3 && data_ > 1 && offload.optimizer == Tier::cpu &&
                     offload.parameters == Tier::cpu && !offload.activations;
    if (!all) {
      obstacles_.add("offload",
                     "torchtitan offloads weights, gradients and states of ZeRO-3 "
                     "together, to the host",
                     "offload=none");
    }
    set("training", "enable_cpu_offload", true);
  }

  void write_precision() {
    const DType type = strategy_.precision.compute_dtype;
    if (type == DType::f16) obstacles_.add("fp16", "torchtitan has bf16 and fp32");
    const bool is_cut = has_pipeline() || strategy_.tensor.ranks > 1;
    if (type == DType::bf16 && is_cut && data_ == 1) {
      obstacles_.add("bf16 without data-parallel ranks",
                     "torchtitan's mixed precision is FSDP's, so it would train in fp32 there",
                     "data>=2");
    }
    set("training", "mixed_precision_param", type == DType::f32 ? "float32" : "bfloat16");
    set("training", "mixed_precision_reduce", "float32");
  }

  // Under a pipeline FSDP keeps gradients whole until the last micro-batch and, with "never",
  // weights for the whole step: ZeRO-1. Without one, every micro-batch gathers and reduces.
  void write_data_parallel() {
    const int stage = strategy_.zero.stage;
    const std::int64_t replicas = strategy_.zero.replicas;
    if (data_ > 1) check_stage(stage);
    const bool whole = stage == 0 || data_ == 1;
    set("parallelism", "data_parallel_replicate_degree", whole ? data_ : replicas);
    set("parallelism", "data_parallel_shard_degree", whole ? 1 : data_ / replicas);
    if (!whole) {
      set("parallelism", "fsdp_reshard_after_forward", stage == 3 ? "always" : "never");
    }
  }

  void check_stage(int stage) {
    const std::string name = "zero-" + std::to_string(stage);
    if (stage == 0 && (has_pipeline() || strategy_.tensor.ranks > 1)) {
      obstacles_.add(name + " beside a pipeline or a tensor group", "torchtitan's DDP stands alone",
                     has_pipeline() ? "zero=1" : "zero>=2");
    } else if (has_pipeline() && stage >= 2) {
      obstacles_.add(name + " under a pipeline",
                     "torchtitan keeps gradients whole until the last micro-batch there", "zero=1");
    } else if (!has_pipeline() && stage == 1) {
      obstacles_.add(name, "torchtitan's FSDP shards gradients too, without a pipeline", "zero>=2");
    }
    if (strategy_.zero.replicas == data_ && stage > 0) {
      obstacles_.add("shards over one rank", "torchtitan would run DDP", "zero=0");
    }
  }

  void write_tensor() {
    set("parallelism", "tensor_parallel_degree", strategy_.tensor.ranks);
    if (strategy_.tensor.ranks == 1) return;
    const bool sequence = strategy_.tensor.sequence_parallel;
    if (is_python_) {
      set("parallelism", "enable_sequence_parallel", sequence);
    } else if (!sequence) {
      obstacles_.add("a tensor group without sequence parallelism",
                     "torchtitan has both together before release 0.3 (-o torchtitan-python)",
                     "sequence_parallel=true");
    }
  }

  void write_pipeline() {
    const PipelineConfig& pipeline = strategy_.pipeline;
    const std::string_view schedule = torchtitan_schedule(pipeline.schedule);
    const bool several = has_several_stages(pipeline.schedule);
    if (schedule.empty() || several != (pipeline.virtual_stages > 1)) {
      obstacles_.add(std::string("schedule ") + name_of(pipeline.schedule) + " with " +
                         std::to_string(pipeline.virtual_stages) + " virtual stages",
                     "torchtitan has 1f1b and gpipe with one, interleaved, breadth-first, "
                     "interleaved-zb, zb-v and dualpipe-v with several",
                     "schedule=1f1b");
    }
    if (facts_.model.tied_embeddings) {
      obstacles_.add("tied embeddings", "torchtitan refuses them under a pipeline", "pipeline=1");
    }
    set("parallelism", "pipeline_parallel_degree", pipeline.ranks);
    set("parallelism", "pipeline_parallel_schedule", std::string(schedule));
    set("parallelism", "pipeline_parallel_microbatch_size", strategy_.micro_batch);
    write_layers();
  }

  void write_layers() {
    const PipelineConfig& pipeline = strategy_.pipeline;
    const std::int64_t layers = facts_.model.layers;
    const std::int64_t stages = pipeline.ranks * pipeline.virtual_stages;
    const std::int64_t each = (layers + stages - 1) / stages;
    const bool is_even = pipeline.layers_per_stage.empty() && pipeline.split == LayerSplit::even;
    if (!is_even || (layers + each - 1) / each != stages) {
      obstacles_.add(std::to_string(layers) + " layers over " + std::to_string(stages) + " stages",
                     "torchtitan's layers a stage do not give as many stages; write "
                     "module_fqns_per_model_part by hand",
                     "pipeline=1");
    }
    set("parallelism", "pipeline_parallel_layers_per_stage", each);
    set("parallelism", "pipeline_parallel_first_stage_less_layers", 0);
    set("parallelism", "pipeline_parallel_last_stage_less_layers", 0);
  }

  void write_recompute() {
    const RecomputeMode mode = strategy_.recompute.mode;
    const bool selects = keeps_attention_only(strategy_.recompute);
    if (mode != RecomputeMode::none && mode != RecomputeMode::full && !selects) {
      obstacles_.add("recompute " + recompute_text(strategy_.recompute),
                     "torchtitan recomputes whole layers, or all that its own list does not keep",
                     "recompute=selective:products");
    }
    const char* name = selects ? "selective" : mode == RecomputeMode::none ? "none" : "full";
    set("activation_checkpoint", "mode", name);
    if (selects) set("activation_checkpoint", "selective_ac_option", "op");
  }

  void write_optimizer() {
    const OptimizerConfig& optimizer = strategy_.optimizer;
    const bool is_adam = optimizer.kind == OptimizerKind::adam;
    if (!is_adam && optimizer.kind != OptimizerKind::adamw) {
      obstacles_.add("the optimizer", "torchtitan has Adam and AdamW of those that zerolab has");
    }
    set("optimizer", "name", is_adam ? "Adam" : "AdamW");
    set("optimizer", "lr", rates_ ? rates_->most : optimizer.lr);
    set("optimizer", "beta1", optimizer.beta1);
    set("optimizer", "beta2", optimizer.beta2);
    set("optimizer", "eps", optimizer.epsilon);
    set("optimizer", "weight_decay", optimizer.weight_decay);
    write_rates();
  }

  // Without a ratio they fall from the end of the warm-up to the last step.
  void write_rates() {
    if (!rates_ || rates_->first != 0) {
      obstacles_.add(
          "scheduler",
          "torchtitan's rates rise from 0 in a line, then stay, fall in a line to 0 or a "
          "cosine; give WarmupLR, WarmupDecayLR or WarmupCosineLR with warmup_type "
          "linear and a least rate of 0");
      return;
    }
    set("lr_scheduler", "warmup_steps", rates_->warmup);
    if (rates_->way == LearningRates::Way::level) {
      set("lr_scheduler", "decay_ratio", 0.0);
      return;
    }
    const bool is_cosine = rates_->way == LearningRates::Way::cosine;
    set("lr_scheduler", "decay_type", is_cosine ? "cosine" : "linear");
    if (rates_->last > 0) set("lr_scheduler", "min_lr_factor", rates_->last / rates_->most);
  }

  const Strategy& strategy_;
  const LaunchFacts& facts_;
  const bool is_python_;
  const std::int64_t data_;
  const std::optional<LearningRates> rates_;
  Obstacles& obstacles_;
  Settings out_;
};

// TOML's floats have a point or an exponent; its texts are JSON's.
std::string toml_value(const Json& value) { return to_text(value); }

std::string tables(const Settings& settings) {
  std::string text, section;
  for (const TorchtitanSetting& each : settings) {
    if (each.section != section) text += "\n[" + each.section + "]\n";
    section = each.section;
    text += each.key + " = " + toml_value(each.value) + "\n";
  }
  return text;
}

// What reading the file would give, without its own comment.
Strategy read_back(const Settings& settings, const LaunchFacts& facts) {
  std::vector<ForeignKey> keys;
  for (const TorchtitanSetting& each : settings) {
    keys.push_back({each.section + "." + each.key, each.value, 0});
  }
  return import_torchtitan_keys(std::move(keys), nullptr, "-o torchtitan",
                                {.ranks = facts.ranks, .model = &facts.model})
      .strategy;
}

}  // namespace

Settings torchtitan_settings(const Strategy& strategy, const LaunchFacts& facts, bool is_python,
                             Obstacles& obstacles) {
  return TorchtitanWriter(strategy, facts, is_python, obstacles).write();
}

Json torchtitan_own_keys(const Settings& settings, const Strategy& strategy,
                         const LaunchFacts& facts, Obstacles& obstacles) {
  return own_keys(strategy, read_back(settings, facts), facts.data_ranks(strategy), obstacles);
}

LaunchFile write_torchtitan(const Strategy& strategy, const LaunchFacts& facts) {
  Obstacles obstacles("torchtitan");
  const Settings settings = torchtitan_settings(strategy, facts, false, obstacles);
  obstacles.throw_if_any();
  const Json own = torchtitan_own_keys(settings, strategy, facts, obstacles);
  obstacles.throw_if_any();
  LaunchFile file;
  // Release 0.1 has another name for the least rate, and passes over this one.
  const bool is_new =
      std::ranges::find(settings, "min_lr_factor", &TorchtitanSetting::key) != settings.end();
  file.text = std::string("# torchtitan 0.2") +
              (is_new ? ": " : " (0.1 where there is no pipeline): ") +
              in_comment(strategy.name + ", " + facts.model.name) + " on " +
              std::to_string(facts.ranks) + " GPUs.\n" + own_comment(own);
  file.text +=
      "# torchrun --nproc-per-node " + std::to_string(std::min(facts.ranks, facts.node_devices)) +
      " --nnodes " + std::to_string(facts.nodes()) +
      " -m torchtitan.train --job.config_file THIS\n# Data, tokenizer and steps are yours.\n";
  if (const TorchtitanModel* model = torchtitan_model(facts.model.name)) {
    file.text += "\n[model]\nname = " + to_text(std::string(model->module)) +
                 "\nflavor = " + to_text(std::string(model->flavor)) + "\n";
  } else {
    file.text +=
        "# [model] is yours, too: torchtitan has no " + in_comment(facts.model.name) + ".\n";
    file.notes.push_back("torchtitan has no model " + facts.model.name +
                         "; add [model] with the name and flavor of one of yours");
  }
  file.text += tables(settings) + (facts.compiles ? "\n[compile]\nenable = true\n" : "");
  return file;
}

}  // namespace zl
