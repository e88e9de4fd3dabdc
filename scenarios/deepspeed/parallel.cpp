#include "scenarios/deepspeed/parallel.h"

#include <array>
#include <nlohmann/json.hpp>
#include <string>

#include "core/base/error.h"
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

constexpr std::array kSplits{LayerSplit::even, LayerSplit::parameters, LayerSplit::cost};

void read_split(Keys& keys, const std::string& path, PipelineConfig& pipeline) {
  const std::string name = keys.text(path);
  for (const LayerSplit split : kSplits) {
    if (name == name_of(split)) {
      pipeline.split = split;
      return;
    }
  }
  keys.effects().reject(path, "\"" + shortened(name) +
                                  "\" is not one of even, parameters, cost, nor a list of layers");
}

void read_layers(Keys& keys, PipelineConfig& pipeline) {
  const std::string path = kSection + "layers_per_stage";
  if (!keys.is_set(path)) return;
  if (keys.value(path).is_string()) return read_split(keys, path, pipeline);
  for (const Json& each : keys.value(path)) {
    if (!each.is_number_integer() || each.get<std::int64_t>() < 1) {
      return keys.effects().reject(path, shown(each) + " is not a positive number of layers");
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

std::int64_t data_parallel_ranks(Keys& keys, const PipelineConfig& pipeline, std::int64_t ranks) {
  if (ranks % pipeline.ranks == 0) return ranks / pipeline.ranks;
  const std::int64_t below = ranks / pipeline.ranks * pipeline.ranks;
  keys.effects().reject(kSection + "pipeline",
                        std::to_string(pipeline.ranks) + " does not divide " +
                            std::to_string(ranks) + " ranks; use --ranks " +
                            (below > 0 ? std::to_string(below) + " or " : "") +
                            std::to_string(below + pipeline.ranks));
  return 1;
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

// SPECS_PARALLEL 3.8 and 9.
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

Json parallel_json(const PipelineConfig& pipeline) {
  if (pipeline == PipelineConfig{}) return nullptr;
  Json section = {{"pipeline", pipeline.ranks},
                  {"virtual_stages", pipeline.virtual_stages},
                  {"schedule", name_of(pipeline.schedule)}};
  if (!pipeline.layers_per_stage.empty()) {
    section["layers_per_stage"] = pipeline.layers_per_stage;
  } else if (pipeline.split != LayerSplit::even) {
    section["layers_per_stage"] = name_of(pipeline.split);
  }
  return section;
}

}  // namespace zl
