#include "scenarios/deepspeed/parallel.h"

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

void read_layers(Keys& keys, PipelineConfig& pipeline) {
  const std::string path = kSection + "layers_per_stage";
  if (!keys.is_set(path)) return;
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

Json parallel_json(const PipelineConfig& pipeline) {
  if (pipeline == PipelineConfig{}) return nullptr;
  Json section = {{"pipeline", pipeline.ranks},
                  {"virtual_stages", pipeline.virtual_stages},
                  {"schedule", name_of(pipeline.schedule)}};
  if (!pipeline.layers_per_stage.empty()) section["layers_per_stage"] = pipeline.layers_per_stage;
  return section;
}

}  // namespace zl
