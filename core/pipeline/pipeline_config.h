// How a model is cut over the ranks of a pipeline. Ownership: a value. Threads: immutable.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/pipeline/layer_split.h"
#include "core/pipeline/pipeline.h"

namespace zl {

struct PipelineConfig {
  std::int64_t ranks = 1;           // 1: no pipeline
  std::int64_t virtual_stages = 1;  // chunks of the model on each rank
  PipelineKind schedule = PipelineKind::one_f_one_b;
  // Empty: as split says. 0: a stage of embedding or head alone, or one that only hands on.
  std::vector<std::int64_t> layers_per_stage = {};
  LayerSplit split = LayerSplit::even;

  bool operator==(const PipelineConfig&) const = default;
};

// Which rank has which stages: "2 ranks of 2 stages", "2 ranks of 2 stages on a V"; empty: no
// pipeline.
std::string placement_text(const PipelineConfig& config);

// Units of each stage, [begin, end) in the order of the model: unit 0 the embedding, 1..layers the
// blocks, layers + 1 the head.
struct UnitRange {
  int begin = 0, end = 0;

  bool operator==(const UnitRange&) const = default;
};

// Blocks of each stage. Error{invalid} naming the key when there are more stages than layers to
// split, the list does not add up to the model's, or leaves a rank with nothing.
std::vector<std::int64_t> layers_of_stages(const ModelConfig& model, const PipelineConfig& config);

// The embedding belongs to the first stage, the head to the last. Throws as layers_of_stages.
std::vector<UnitRange> split_units(const ModelConfig& model, const PipelineConfig& config);

// Layers among the units of a stage.
std::int64_t layers_of(const ModelConfig& model, const UnitRange& units);

// Which of a model's `count` units a rank has, all its chunks together.
std::vector<bool> units_of_rank(const Pipeline& pipeline, const std::vector<UnitRange>& stages,
                                int rank, int count);

}  // namespace zl
