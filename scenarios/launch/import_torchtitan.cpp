#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "core/base/text.h"
#include "scenarios/launch/learning_rates.h"
#include "scenarios/launch/own_keys.h"
#include "scenarios/launch/toml_document.h"
#include "scenarios/launch/torchtitan.h"
#include "scenarios/launch/torchtitan_keys.h"
#include "scenarios/launch/torchtitan_terms.h"

namespace zl {
namespace {

constexpr ForeignName kTorchtitanNames[] = {
    {"x-zerolab.parallel.tensor", "parallelism.tensor_parallel_degree"},
    {"x-zerolab.parallel.pipeline", "parallelism.pipeline_parallel_degree"},
    {"x-zerolab.parallel.virtual_stages", "parallelism.pipeline_parallel_layers_per_stage"},
    {"x-zerolab.parallel.schedule", "parallelism.pipeline_parallel_schedule"},
    {"x-zerolab.parallel.replicate", "parallelism.data_parallel_replicate_degree"},
    {"train_batch_size", "training.global_batch_size"},
    {"gradient_accumulation_steps", "training.global_batch_size"},
    {"train_micro_batch_size_per_gpu", "training.local_batch_size"}};

const std::string kParallel = "parallelism.", kTraining = "training.";

// The layers of each stage as torchtitan cuts them: input and output count as so many layers.
std::vector<std::int64_t> layers_of_stages(std::int64_t layers, std::int64_t stages,
                                           std::int64_t input, std::int64_t output) {
  std::vector<std::int64_t> all;
  const std::int64_t counted = layers + input + output;
  for (std::int64_t i = 0; i < stages; ++i) {
    all.push_back(counted / stages + (i < counted % stages ? 1 : 0));
  }
  all.front() -= input;
  all.back() -= output;
  return all;
}

class TorchtitanReader {
 public:
  TorchtitanReader(ForeignKeys& keys, const ImportContext& context)
      : keys_(keys), context_(context) {}

  Strategy read() {
    read_model_mesh();
    read_data_parallel();
    if (has_pipeline()) read_stages();
    read_batch();
    read_precision();
    read_recompute();
    read_optimizer();
    read_offload();
    return std::move(out_);
  }

  std::int64_t ranks() const { return ranks_; }

 private:
  bool has_pipeline() const { return out_.pipeline.ranks > 1; }

  void read_model_mesh() {
    out_.tensor.ranks = keys_.degree(kParallel + "tensor_parallel_degree");
    // Always before release 0.3, whose key says it.
    const std::string sequence = kParallel + "enable_sequence_parallel";
    const bool is_off = keys_.given(sequence) != nullptr && !keys_.flag(sequence);
    out_.tensor.sequence_parallel = out_.tensor.ranks > 1 && !is_off;
    out_.pipeline.ranks = keys_.degree(kParallel + "pipeline_parallel_degree");
  }

  // As ParallelDims has it: a shard degree of -1 takes the ranks that are left.
  void read_data_parallel() {
    const std::string replicate_key = kParallel + "data_parallel_replicate_degree";
    const std::string shard_key = kParallel + "data_parallel_shard_degree";
    const std::int64_t replicate = keys_.degree(replicate_key);
    std::int64_t shard = keys_.integer(shard_key, -1, 32'768).value_or(-1);
    const std::int64_t others = out_.tensor.ranks * out_.pipeline.ranks * replicate;
    ranks_ = context_.infer_ranks ? others * std::max<std::int64_t>(shard, 1) : context_.ranks;
    if (shard == 0) keys_.fail(shard_key, "0 is no degree; write -1 for the ranks that are left");
    if (shard < 0 && ranks_ % others == 0) shard = ranks_ / others;
    if (others * shard != ranks_) {
      keys_.fail(keys_.given(shard_key) != nullptr ? shard_key : replicate_key,
                 "the degrees multiply to " +
                     std::to_string(others * std::max<std::int64_t>(shard, 1)) + ", the run has " +
                     std::to_string(ranks_) + " ranks; change one, or --ranks");
    }
    data_ = replicate * shard;
    read_stage(replicate, shard);
  }

  void read_stage(std::int64_t replicate, std::int64_t shard) {
    const std::string key = kParallel + "fsdp_reshard_after_forward";
    const std::string reshard = keys_.one_of(key, "default|always|never").value_or("default");
    ZeroConfig& zero = out_.zero;
    zero.overlap_comm = true;
    if (shard == 1) return;
    zero.replicas = replicate;
    const bool gathers_again = reshard == "always" || (reshard == "default" && !has_pipeline());
    zero.stage = gathers_again ? 3 : has_pipeline() ? 1 : 2;
    if (zero.stage == 3) zero.param_persistence_threshold = zero.max_reuse_distance = 0;
    if (!has_pipeline()) {
      keys_.note(key, "ZeRO-" + std::to_string(zero.stage));
    } else if (gathers_again) {
      keys_.warn(key +
                 ": torchtitan keeps gradients whole until the last micro-batch of a "
                 "pipeline; here every micro-batch reduces them");
    } else {
      keys_.note(key, "under a pipeline weights and gradients stay whole for the step: ZeRO-1");
    }
  }

  std::optional<std::int64_t> model_layers() {
    if (context_.model != nullptr) return context_.model->layers;
    const auto name = keys_.text("model.name"), flavor = keys_.text("model.flavor");
    const TorchtitanModel* model = name && flavor ? torchtitan_flavor(*name, *flavor) : nullptr;
    if (model == nullptr) return std::nullopt;
    return model->layers;
  }

  void read_stages() {
    PipelineConfig& pipeline = out_.pipeline;
    const std::string key = kParallel + "pipeline_parallel_schedule";
    const std::string name = keys_.text(key).value_or("1F1B");
    if (const auto kind = schedule_of_torchtitan(name)) {
      pipeline.schedule = *kind;
    } else {
      keys_.fail(key, "\"" + name +
                          "\" is not one of 1F1B, GPipe, LoopedBFS, Interleaved1F1B, "
                          "InterleavedZeroBubble, ZBVZeroBubble, DualPipeV");
    }
    pipeline.virtual_stages = has_several_stages(pipeline.schedule) ? 2 : 1;
    const std::int64_t input =
        keys_.integer(kParallel + "pipeline_parallel_first_stage_less_layers", 0).value_or(1);
    const std::int64_t output =
        keys_.integer(kParallel + "pipeline_parallel_last_stage_less_layers", 0).value_or(1);
    const std::string each_key = kParallel + "pipeline_parallel_layers_per_stage";
    const auto each = keys_.integer(each_key);
    const auto layers = model_layers();
    if (!layers) {
      if (each) keys_.fail(each_key, "of how many layers? Import with --model");
      keys_.warn(kParallel +
                 "pipeline_parallel_degree: stages are cut evenly; --model says how "
                 "torchtitan cuts them");
      return;
    }
    if (each) set_stages(each_key, (*layers + input + output + *each - 1) / *each);
    set_layers(*layers, input, output);
  }

  void set_stages(const std::string& key, std::int64_t stages) {
    if (stages % out_.pipeline.ranks != 0) {
      keys_.fail(key, "it makes " + std::to_string(stages) + " stages, no multiple of " +
                          std::to_string(out_.pipeline.ranks) + " ranks");
    }
    out_.pipeline.virtual_stages = stages / out_.pipeline.ranks;
  }

  void set_layers(std::int64_t layers, std::int64_t input, std::int64_t output) {
    const std::int64_t stages = out_.pipeline.ranks * out_.pipeline.virtual_stages;
    if (stages > layers) {
      keys_.fail(
          kParallel + "pipeline_parallel_degree",
          std::to_string(stages) + " stages of " + std::to_string(layers) + " layers; use fewer");
    }
    std::vector<std::int64_t> list = layers_of_stages(layers, stages, input, output);
    if (*std::ranges::min_element(list) < 1) {
      keys_.fail(kParallel + "pipeline_parallel_degree", "a stage would have no layer");
    }
    if (list != even_split(layers, static_cast<int>(stages))) {
      out_.pipeline.layers_per_stage = std::move(list);
    }
  }

  void read_batch() {
    const std::string local_key = kTraining + "local_batch_size";
    const std::string global_key = kTraining + "global_batch_size";
    const std::int64_t local = keys_.integer(local_key).value_or(8);
    std::int64_t global = keys_.integer(global_key, -1, 1'000'000'000'000).value_or(-1);
    if (global <= 0) global = local * data_;
    if (global % (local * data_) != 0) {
      keys_.fail(global_key, std::to_string(global) + " is no multiple of local batch " +
                                 std::to_string(local) + " * " + std::to_string(data_) +
                                 " data-parallel ranks");
    }
    const std::int64_t passes = global / (local * data_);
    out_.micro_batch = local;
    out_.gradient_accumulation = passes;
    if (!has_pipeline()) return;
    const std::string micro_key = kParallel + "pipeline_parallel_microbatch_size";
    out_.micro_batch = keys_.integer(micro_key).value_or(1);
    if (local % out_.micro_batch != 0) {
      keys_.fail(micro_key, "it does not divide " + local_key + ", " + std::to_string(local));
    }
    out_.gradient_accumulation = local / out_.micro_batch * passes;
    if (passes == 1) return;
    keys_.refuse(global_key, "the pipeline would run empty " + std::to_string(passes) +
                                 " times a step; make " + local_key + " as many times larger");
  }

  void read_precision() {
    const auto type =
        keys_.one_of(kTraining + "mixed_precision_param", "bfloat16|float32").value_or("bfloat16");
    keys_.one_of(kTraining + "mixed_precision_reduce", "float32");
    if (type == "bfloat16") out_.precision.compute_dtype = DType::bf16;
    if (keys_.one_of(kTraining + "dtype", "bfloat16|float32").value_or("float32") != "float32") {
      keys_.refuse(kTraining + "dtype", "states of 16 bits; write float32");
    }
  }

  void read_recompute() {
    const std::string key = "activation_checkpoint.mode";
    const std::string mode =
        keys_.one_of(key, "none|full|selective|memory_budget").value_or("selective");
    const std::string option_key = "activation_checkpoint.selective_ac_option";
    const std::string option = keys_.text(option_key).value_or("2");
    if (mode == "memory_budget") {
      keys_.refuse(key, "of torchtitan's modes none, selective and full are");
    } else if (mode == "full") {
      out_.recompute.mode = RecomputeMode::full;
    } else if (mode == "selective" && option == "op") {
      out_.recompute = {.mode = RecomputeMode::selective, .products = true};
      keys_.note(option_key, "under torch-* profiles every second product is kept besides");
    } else if (mode == "selective") {
      recompute_every(option_key, integer_in(option).value_or(-1));
    }
  }

  // Every so-manieth layer; of 0 all.
  void recompute_every(const std::string& key, std::int64_t every) {
    const std::optional<std::int64_t> layers = model_layers();
    if (every < 0) {
      keys_.fail(key, "is neither op nor how many layers apart those are that are recomputed");
    }
    if (every <= 1) {
      out_.recompute.mode = RecomputeMode::full;
    } else if (!layers || has_pipeline()) {
      keys_.refuse(key, "every layer of so many (torchtitan's default is 2) needs " +
                            std::string(layers ? "a run without a pipeline" : "a model's layers") +
                            "; op and full are");
    } else if (*layers >= every) {
      out_.recompute = {.mode = RecomputeMode::first_blocks, .blocks = *layers / every};
      keys_.note(key, "as many first layers: the same bytes and work");
    }
  }

  void read_optimizer() {
    OptimizerConfig& optimizer = out_.optimizer;
    const std::string name = keys_.text("optimizer.name").value_or("AdamW");
    if (name == "Adam") optimizer.kind = OptimizerKind::adam;
    if (name != "Adam" && name != "AdamW") keys_.refuse("optimizer.name", "AdamW and Adam are");
    optimizer.lr = keys_.number("optimizer.lr").value_or(8e-4);
    optimizer.beta1 = keys_.number("optimizer.beta1").value_or(0.9);
    optimizer.beta2 = keys_.number("optimizer.beta2").value_or(0.95);
    optimizer.epsilon = keys_.number("optimizer.eps").value_or(1e-8);
    optimizer.weight_decay = keys_.number("optimizer.weight_decay").value_or(0.1);
    out_.gradient_clipping = keys_.number(kTraining + "max_norm").value_or(1);
    read_rates();
  }

  // After the warm-up down to the last step, unless decay_ratio leaves a level part between.
  void read_rates() {
    const std::string at = "lr_scheduler.";
    LearningRates rates{.most = out_.optimizer.lr};
    rates.warmup = keys_.integer(at + "warmup_steps", 0).value_or(200);
    const auto steps = keys_.integer("training.steps", 1).value_or(10'000);
    rates.steps = keys_.integer(at + "total_steps", 1).value_or(steps);
    const auto ratio = keys_.number(at + "decay_ratio");
    const std::string type =
        keys_.one_of(at + "decay_type", "linear|sqrt|cosine").value_or("linear");
    const auto least = keys_.number(at + "lr_min");  // its name in release 0.1
    rates.last = rates.most * keys_.number(at + "min_lr_factor").value_or(least.value_or(0));
    const auto whole = static_cast<double>(rates.steps);
    const bool falls = !ratio || *ratio > 0;
    const bool stays = falls && ratio && std::llround(*ratio * whole) < rates.steps - rates.warmup;
    if (falls) rates.way = type == "cosine" ? LearningRates::Way::cosine : LearningRates::Way::line;
    const auto schedule = stays || type == "sqrt" ? std::nullopt : schedule_of(rates);
    if (schedule) {
      out_.schedule = *schedule;
      return;
    }
    keys_.warn(
        "lr_scheduler: the learning rate stays constant here, which has no level part before it "
        "falls, no root and no min_lr_factor of a line; add a scheduler to the strategy to train "
        "with one");
  }

  void read_offload() {
    const std::string key = kTraining + "enable_cpu_offload";
    if (!keys_.flag(key)) return;
    if (out_.zero.stage != 3) {
      keys_.refuse(key,
                   "without ZeRO-3 weights stay on the device; write "
                   "fsdp_reshard_after_forward = \"always\"");
      return;
    }
    out_.offload.optimizer = out_.offload.parameters = Tier::cpu;
  }

  ForeignKeys& keys_;
  const ImportContext& context_;
  Strategy out_;
  std::int64_t ranks_ = 1, data_ = 1;
};

}  // namespace

ImportedStrategy import_torchtitan_keys(std::vector<ForeignKey> given, const Json& own,
                                        std::string_view source, const ImportContext& context) {
  ForeignKeys keys(std::move(given), torchtitan_groups(), std::string(source), "torchtitan");
  TorchtitanReader reader(keys, context);
  Strategy strategy = reader.read();
  strategy.name = context.name.empty() ? name_of_source(source) : context.name;
  ImportContext checked = context;
  checked.ranks = reader.ranks();
  checked.infer_ranks = false;
  return keys.finish(strategy, own, checked, kTorchtitanNames);
}

ImportedStrategy import_torchtitan(std::string_view text, std::string_view source,
                                   const ImportContext& context) {
  return import_torchtitan_keys(toml_keys(text, source), read_own_comment(text, source), source,
                                context);
}

}  // namespace zl
