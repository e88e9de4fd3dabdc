#include "core/pipeline/layer_split.h"

#include <algorithm>

#include "core/model/parameters.h"

namespace zl {
namespace {

// Elements of the parameters that a stage has with each kind of unit.
UnitWeights parameters_of_units(const ModelConfig& model) {
  const ParameterTable table(model);
  const double matrix = static_cast<double>(model.vocab) * static_cast<double>(model.hidden);
  UnitWeights weights{.layer = 0};
  for (const ParameterSpec& spec : table.specs) {
    const auto count = static_cast<double>(spec.count());
    if (spec.unit == 0) weights.embedding += count;
    if (spec.unit == 1) weights.layer += count;
    if (spec.unit == table.head_unit()) weights.head += count;
  }
  if (table.tied()) weights.head += matrix;  // the last stage's copy
  return weights;
}

}  // namespace

const char* name_of(LayerSplit split) {
  constexpr const char* kNames[] = {"even", "units", "parameters", "cost"};
  return kNames[static_cast<std::size_t>(split)];
}

// As ModelConfig::flops_per_token: six a parameter that is multiplied with, twelve a hidden unit
// for attention.
UnitWeights weights_of(const ModelConfig& model, LayerSplit split) {
  if (split == LayerSplit::units) return {.embedding = 1, .layer = 1, .head = 1};
  UnitWeights weights = parameters_of_units(model);
  if (split == LayerSplit::parameters) return weights;
  weights.embedding = 0;  // looked up
  weights.layer = 6 * weights.layer +
                  12 * static_cast<double>(model.hidden) * static_cast<double>(model.max_sequence);
  weights.head *= 6;
  return weights;
}

bool is_even_by_units(std::int64_t layers, std::int64_t stages) {
  return layers % stages != 0 && (layers + 2) % stages == 0 && layers > stages;
}

std::vector<std::int64_t> even_split(std::int64_t layers, int stages) {
  std::vector<std::int64_t> split(stages, layers / stages);
  for (std::int64_t i = 0; i < layers % stages; ++i) ++split[i];
  return split;
}

// Each layer goes to the stage that is lightest with it: equal layers, so no choice is regretted.
std::vector<std::int64_t> balanced_split(std::int64_t layers, int stages,
                                         const UnitWeights& weights) {
  std::vector<std::int64_t> split(stages, 1);
  std::vector<double> sums(stages, weights.layer);
  sums.front() += weights.embedding;
  sums.back() += weights.head;
  for (std::int64_t left = layers - stages; left > 0; --left) {
    const auto lightest = std::min_element(sums.rbegin(), sums.rend());
    *lightest += weights.layer;
    ++split[static_cast<std::size_t>(sums.rend() - lightest) - 1];
  }
  return split;
}

std::vector<std::int64_t> split_layers(const ModelConfig& model, int stages, LayerSplit split) {
  if (split == LayerSplit::even) return even_split(model.layers, stages);
  return balanced_split(model.layers, stages, weights_of(model, split));
}

}  // namespace zl
