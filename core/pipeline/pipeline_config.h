// How a model is cut over the ranks of a pipeline. Ownership: a value. Threads: immutable.
#pragma once

#include <cstdint>
#include <vector>

#include "core/pipeline/pipeline.h"

namespace zl {

struct PipelineConfig {
  std::int64_t ranks = 1;           // 1: no pipeline
  std::int64_t virtual_stages = 1;  // chunks of the model on each rank
  PipelineKind schedule = PipelineKind::one_f_one_b;
  std::vector<std::int64_t> layers_per_stage = {};  // empty: even_split

  bool operator==(const PipelineConfig&) const = default;
};

// Units of each stage, [begin, end) in the order of the model: unit 0 the embedding, 1..layers the
// blocks, layers + 1 the head.
struct UnitRange {
  int begin = 0, end = 0;

  bool operator==(const UnitRange&) const = default;
};

// Layers of each stage: equal, and the first ones have one more where that leaves a rest (DeepSpeed
// `uniform` puts the rest in the same places to within one stage).
std::vector<std::int64_t> even_split(std::int64_t layers, int stages);
// The embedding belongs to the first stage, the head to the last. Error{invalid} naming the key
// when a stage would have no layer or the list does not add up to the model's.
std::vector<UnitRange> split_units(std::int64_t layers, const PipelineConfig& config);

// Which of a model's `count` units a rank has, all its chunks together.
std::vector<bool> units_of_rank(const Pipeline& pipeline, const std::vector<UnitRange>& stages,
                                int rank, int count);

}  // namespace zl
