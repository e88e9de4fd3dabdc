#include "scenarios/deepspeed/parallel.h"

#include <array>
#include <nlohmann/json.hpp>
#include <string>

#include "core/base/error.h"
#include "core/base/nearest.h"
#include "core/base/text.h"

namespace zl {
namespace {

const std::string kSection = "x-zerolab.parallel.";

std::string kinds_text() {
  std::string names;
  for (int i = 0; i < kPipelineKinds; ++i) {
    names += (i == 0 ? "" : ", ") + std::string(name_of(static_cast<PipelineKind>(i)));
  }
  return names;
}

// DeepSpeed has 1f1b alone, Megatron-LM that and interleaved.
const char* others_have(PipelineKind kind) {
  switch (kind) {
    case PipelineKind::interleaved:
      return "Megatron-LM and torchtitan have it, DeepSpeed does not";
    case PipelineKind::zb_h2:
      return "sail-sg's zero-bubble has it, DeepSpeed, Megatron-LM and torchtitan do not";
    default:
      return "torchtitan has it, DeepSpeed and Megatron-LM do not";
  }
}

constexpr std::array kSplits{LayerSplit::even, LayerSplit::units, LayerSplit::parameters,
                             LayerSplit::cost};

void read_split(Keys& keys, const std::string& path, PipelineConfig& pipeline) {
  const std::string name = keys.text(path);
  for (const LayerSplit split : kSplits) {
    if (name == name_of(split)) {
      pipeline.split = split;
      return;
    }
  }
  keys.effects().reject(path,
                        "\"" + shortened(name) +
                            "\" is not one of even, units, parameters, cost, nor a list of layers");
}

void read_layers(Keys& keys, PipelineConfig& pipeline) {
  const std::string path = kSection + "layers_per_stage";
  if (!keys.is_set(path)) return;
  if (keys.value(path).is_string()) return read_split(keys, path, pipeline);
  for (const Json& each : keys.value(path)) {
    if (!each.is_number_integer() || each.get<std::int64_t>() < 0) {
      return keys.effects().reject(path, shown(each) + " is not a number of layers");
    }
    pipeline.layers_per_stage.push_back(each.get<std::int64_t>());
  }
}

}  // namespace

PipelineConfig build_pipeline(Keys& keys) {
  PipelineConfig pipeline;
  if (!keys.is_set(kSection + "pipeline")) return pipeline;
  pipeline.ranks = keys.integer(kSection + "pipeline");
  pipeline.virtual_stages = keys.integer(kSection + "virtual_stages");
  const std::string name = keys.text(kSection + "schedule");
  if (const auto kind = pipeline_kind(name)) {
    pipeline.schedule = *kind;
  } else {
    keys.effects().reject(kSection + "schedule",
                          "\"" + shortened(name) + "\" is not one of " + kinds_text());
  }
  read_layers(keys, pipeline);
  return pipeline;
}

namespace {

const std::string kOwnOverlap = kSection + "tensor_overlap";
const std::string kOverlap = "tensor_parallel.tp_overlap_comm";  // DeepSpeed's

bool overlaps(Keys& keys) {
  const bool own = keys.boolean(kOwnOverlap), autotp = keys.boolean(kOverlap);
  if (own == autotp || !keys.is_set(kOwnOverlap) || !keys.is_set(kOverlap)) return own || autotp;
  keys.effects().reject(kOverlap, std::string(autotp ? "true" : "false") + " contradicts " +
                                      kOwnOverlap + ", " + (own ? "true" : "false") +
                                      "; remove one of them");
  return own;
}

}  // namespace

TensorConfig build_tensor(Keys& keys) {
  TensorConfig tensor;
  const std::string own = kSection + "tensor", autotp = "tensor_parallel.autotp_size";
  tensor.ranks = keys.integer(own);
  tensor.sequence_parallel = keys.boolean(kSection + "sequence_parallel");
  tensor.overlap = overlaps(keys);
  if (const std::int64_t size = keys.integer(autotp); size > 0) {
    if (keys.is_set(own) && tensor.ranks != size) {
      keys.effects().reject(autotp, std::to_string(size) + " contradicts " + own + ", " +
                                        std::to_string(tensor.ranks) + "; remove one of them");
    }
    tensor.ranks = size;
    keys.effects().record(
        autotp, size, EffectStatus::honoured,
        "as Megatron-LM cuts layers; the vocabulary too, which AutoTP leaves whole");
  }
  if (tensor.ranks > 1) return tensor;
  for (const auto& [key, is_on] :
       {std::pair{kSection + "sequence_parallel", tensor.sequence_parallel},
        std::pair{kOwnOverlap, keys.boolean(kOwnOverlap)},
        std::pair{kOverlap, keys.boolean(kOverlap)}}) {
    if (is_on) keys.effects().warn_ignored(key, "there is no tensor group");
  }
  return {};
}

std::int64_t data_parallel_ranks(Keys& keys, const Strategy& strategy, std::int64_t ranks) {
  const std::int64_t pipeline = strategy.pipeline.ranks, tensor = strategy.tensor.ranks;
  const std::int64_t model = pipeline * tensor;
  if (ranks % model == 0) return ranks / model;
  const std::int64_t below = ranks / model * model;
  const bool both = pipeline > 1 && tensor > 1;
  const std::string sizes =
      both ? "tensor " + std::to_string(tensor) + " x pipeline " + std::to_string(pipeline)
           : std::to_string(model);
  keys.effects().reject(
      kSection + (tensor > 1 ? "tensor" : "pipeline"),
      sizes + " does not divide " + std::to_string(ranks) + " ranks; use --ranks " +
          (below > 0 ? std::to_string(below) + " or " : "") + std::to_string(below + model));
  return 1;
}

std::int64_t build_replicas(Keys& keys, std::int64_t ranks) {
  const std::string own = kSection + "replicate", mics = "zero_optimization.mics_shard_size";
  std::int64_t replicas = keys.integer(own);
  const std::string data = " the " + std::to_string(ranks) + " data-parallel ranks";
  if (ranks % replicas != 0) {
    keys.effects().reject(own, std::to_string(replicas) + " does not divide" + data + "; use " +
                                   nearest_divisors(ranks, replicas));
    return 1;
  }
  const std::int64_t shard = keys.integer(mics);
  if (shard <= 0) return replicas;
  if (ranks % shard != 0) {
    keys.effects().reject(mics, std::to_string(shard) + " does not divide" + data + "; use " +
                                    nearest_divisors(ranks, shard));
    return 1;
  }
  if (keys.is_set(own) && replicas != ranks / shard) {
    keys.effects().reject(mics, std::to_string(shard) + " makes " + std::to_string(ranks / shard) +
                                    " copies, " + own + " says " + std::to_string(replicas));
  }
  return ranks / shard;
}

void check_replicas(Keys& keys, const Strategy& strategy) {
  const std::string conflict = replicas_conflict(strategy);
  if (conflict.empty()) return;
  const bool mics = keys.is_set("zero_optimization.mics_shard_size");
  keys.effects().reject(mics ? "zero_optimization.mics_shard_size" : kSection + "replicate",
                        conflict.substr(conflict.find(": ") + 2));
}

void check_secondary(Keys& keys, const Strategy& strategy, std::int64_t ranks) {
  const std::string key = "zero_optimization.zero_hpz_partition_size";
  const std::int64_t part = strategy.zero.secondary_partition;
  const std::string conflict = secondary_conflict(strategy);
  if (!conflict.empty()) {
    keys.effects().reject(key, conflict.substr(conflict.find(": ") + 2));
  } else if (ranks % part != 0) {
    keys.effects().reject(key, std::to_string(part) + " does not divide the " +
                                   std::to_string(ranks) + " data-parallel ranks; use " +
                                   nearest_divisors(ranks, part));
  }
}

void check_tensor_optimizer(Keys& keys, const Strategy& strategy) {
  const std::string conflict = tensor_conflict(strategy);
  if (!conflict.empty()) {
    keys.effects().reject("optimizer.type", conflict.substr(conflict.find(": ") + 2));
  }
}

void check_schedule(Keys& keys, const PipelineConfig& pipeline, std::int64_t micro_batches) {
  if (pipeline.ranks * pipeline.virtual_stages == 1) return;
  try {
    check_shape(pipeline.schedule, {.ranks = static_cast<int>(pipeline.ranks),
                                    .micro_batches = static_cast<int>(micro_batches),
                                    .chunks = static_cast<int>(pipeline.virtual_stages)});
  } catch (const Error& error) {
    const std::string what = error.what();
    keys.effects().reject(kSection + "schedule", what.substr(what.find(": ") + 2));
  }
}

// ZeRO 2 and 3 beside a pipeline: DeepSpeed asserts against them (runtime/pipe/engine.py).
void note_others(Keys& keys, const Strategy& strategy, const ModelConfig* model) {
  const PipelineConfig& pipeline = strategy.pipeline;
  if (pipeline.ranks == 1) return;
  std::string why;
  if (strategy.zero.stage >= 2) {
    why =
        "DeepSpeed refuses ZeRO-2 and 3 under a pipeline, torchtitan keeps weights and gradients "
        "whole during the step; here every micro-batch reduces";
    if (strategy.zero.stage == 3) why += " and gathers";
  }
  if (model != nullptr && model->tied_embeddings) {
    why += std::string(why.empty() ? "" : "; ") +
           "torchtitan refuses tied embeddings under a pipeline; here first and last stage add up";
  }
  if (!why.empty()) {
    keys.effects().record(kSection + "pipeline", pipeline.ranks, EffectStatus::honoured, why);
  }
  if (pipeline.schedule == PipelineKind::one_f_one_b) return;
  keys.effects().record(kSection + "schedule", name_of(pipeline.schedule), EffectStatus::honoured,
                        others_have(pipeline.schedule));
}

Json parallel_json(const Strategy& strategy) {
  const PipelineConfig& pipeline = strategy.pipeline;
  Json section;
  if (strategy.tensor.ranks > 1) {
    section["tensor"] = strategy.tensor.ranks;
    section["sequence_parallel"] = strategy.tensor.sequence_parallel;
    if (strategy.tensor.overlap) section["tensor_overlap"] = true;
  }
  if (strategy.zero.replicas > 1) section["replicate"] = strategy.zero.replicas;
  if (pipeline == PipelineConfig{}) return section;
  section["pipeline"] = pipeline.ranks;
  section["virtual_stages"] = pipeline.virtual_stages;
  section["schedule"] = name_of(pipeline.schedule);
  if (!pipeline.layers_per_stage.empty()) {
    section["layers_per_stage"] = pipeline.layers_per_stage;
  } else if (pipeline.split != LayerSplit::even) {
    section["layers_per_stage"] = name_of(pipeline.split);
  }
  return section;
}

}  // namespace zl
