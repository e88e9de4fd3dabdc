// How many of a model's layers each stage of a pipeline has.
// Ownership: values. Threads: pure functions.
#pragma once

#include <cstdint>
#include <vector>

#include "core/model/model_config.h"

namespace zl {

enum class LayerSplit : std::uint8_t {
  even,        // equal, and the first ones have one more where that leaves a rest
  units,       // equal, where embedding and head count as a layer each
  parameters,  // the largest stage has as few parameters as can be
  cost,        // the slowest stage has as few FLOPs as can be, forward and backward
};
const char* name_of(LayerSplit split);  // "even", "units", "parameters", "cost"

// What a layer brings to its stage, and embedding and head to the first and the last.
struct UnitWeights {
  double embedding = 0, layer = 1, head = 0;
};
// Elements; FLOPs a token, at the model's longest sequence; or one of each.
UnitWeights weights_of(const ModelConfig& model, LayerSplit split);

// DeepSpeed's `uniform` puts the rest in the same places to within one stage.
std::vector<std::int64_t> even_split(std::int64_t layers, int stages);
// The largest sum of a stage is as small as can be with a layer at least in each; what could lie
// with several lies with the last of them, which holds the fewest micro-batches.
std::vector<std::int64_t> balanced_split(std::int64_t layers, int stages,
                                         const UnitWeights& weights);
std::vector<std::int64_t> split_layers(const ModelConfig& model, int stages, LayerSplit split);
// Whether so many stages are equal by LayerSplit::units and not without it: 126 layers over 16.
// Megatron-LM's account-for-embedding- and -loss-in-pipeline-split, DeepSpeed's partition method
// "type:transformer|embedding".
bool is_even_by_units(std::int64_t layers, std::int64_t stages);

}  // namespace zl
