// Layers of the stages of a pipeline: golden splits, and that no other split has a
// smaller largest stage.
#include "core/pipeline/layer_split.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <numeric>

#include "core/base/error.h"
#include "core/model/parameters.h"
#include "core/pipeline/pipeline_config.h"

namespace zl {
namespace {

using Layers = std::vector<std::int64_t>;

TEST(LayerSplit, EvenPutsTheRestFirst) {
  EXPECT_EQ(even_split(26, 4), (Layers{7, 7, 6, 6}));
  EXPECT_EQ(even_split(10, 4), (Layers{3, 3, 2, 2}));
}

double largest(const Layers& split, const UnitWeights& weights) {
  double most = 0;
  for (std::size_t i = 0; i < split.size(); ++i) {
    double sum = static_cast<double>(split[i]) * weights.layer;
    if (i == 0) sum += weights.embedding;
    if (i + 1 == split.size()) sum += weights.head;
    most = std::max(most, sum);
  }
  return most;
}

// Of all ways to give every stage a layer at least.
double smallest_largest(std::int64_t layers, int stages, const UnitWeights& weights) {
  double best = 1e300;
  Layers split(stages, 1);
  const std::function<void(int, std::int64_t)> place = [&](int stage, std::int64_t left) {
    if (stage == stages - 1) {
      split[stage] = left;
      best = std::min(best, largest(split, weights));
      return;
    }
    for (split[stage] = 1; left - split[stage] >= stages - 1 - stage; ++split[stage]) {
      place(stage + 1, left - split[stage]);
    }
  };
  place(0, layers);
  return best;
}

TEST(LayerSplit, BalancedHasTheSmallestLargestStage) {
  for (const UnitWeights& weights :
       {UnitWeights{0, 1, 0}, UnitWeights{2.5, 1, 0}, UnitWeights{0, 1, 3}, UnitWeights{1, 1, 2},
        UnitWeights{9, 1, 9}, UnitWeights{0.4, 3, 7}}) {
    for (const int stages : {1, 2, 3, 4}) {
      for (const std::int64_t layers : {4, 5, 9, 12}) {
        const Layers split = balanced_split(layers, stages, weights);
        EXPECT_EQ(std::accumulate(split.begin(), split.end(), std::int64_t{0}), layers);
        EXPECT_GE(*std::ranges::min_element(split), 1);
        EXPECT_DOUBLE_EQ(largest(split, weights), smallest_largest(layers, stages, weights));
      }
    }
  }
  EXPECT_EQ(balanced_split(5, 3, {}), (Layers{1, 2, 2})) << "the first holds the most";
}

// The units of GPT-2 124M: a layer of 7.1 M parameters; embeddings of 39.4 M, tied to the head.
TEST(LayerSplit, CountsEmbeddingAndHead) {
  ModelConfig model;
  model.layers = 12;
  model.hidden = 768;
  model.heads = 12;
  model.vocab = 50257;
  model.max_sequence = 1024;
  model.complete();
  const UnitWeights parameters = weights_of(model, LayerSplit::parameters);
  EXPECT_EQ(parameters.layer, 7087872);
  EXPECT_EQ(parameters.embedding, 50257 * 768 + 1024 * 768);
  EXPECT_EQ(parameters.head, 50257 * 768 + 2 * 768) << "the last stage has a copy";
  const UnitWeights cost = weights_of(model, LayerSplit::cost);
  EXPECT_EQ(cost.embedding, 0) << "a look-up";
  EXPECT_EQ(cost.layer, 6.0 * 7087872 + 12.0 * 768 * 1024);
  EXPECT_EQ(cost.layer * 12 + cost.head, model.flops_per_token(1024) - 6.0 * 1024 * 768)
      << "but for the positions, which are looked up too";
  PipelineConfig config{.ranks = 4, .split = LayerSplit::parameters};
  const auto layers_of = [&] {
    Layers layers;
    for (const UnitRange& units : split_units(model, config)) {
      layers.push_back(units.end - units.begin);
    }
    --layers.front(), --layers.back();
    return layers;
  };
  EXPECT_EQ(layers_of(), (Layers{1, 5, 5, 1}));
  config.split = LayerSplit::cost;
  EXPECT_EQ(layers_of(), (Layers{3, 4, 4, 1}));
  config.split = LayerSplit::units;
  model.layers = 14;
  EXPECT_EQ(layers_of(), (Layers{3, 4, 4, 3}));
}

TEST(LayerSplit, UnitsMakeStagesEqualThatLayersAloneDoNot) {
  EXPECT_TRUE(is_even_by_units(126, 16)) << "Llama 3 405B";
  EXPECT_TRUE(is_even_by_units(70, 12)) << "BLOOM";
  EXPECT_FALSE(is_even_by_units(128, 16));
  EXPECT_FALSE(is_even_by_units(128, 12)) << "with or without a rest in both";
  EXPECT_FALSE(is_even_by_units(6, 8)) << "the first stage would have no layer";
}

TEST(LayerSplit, ListsMayLeaveStagesWithoutALayer) {
  ModelConfig model;
  model.layers = 4;
  const PipelineConfig ends{.ranks = 3, .layers_per_stage = {0, 4, 0}};
  EXPECT_EQ(split_units(model, ends), (std::vector<UnitRange>{{0, 1}, {1, 5}, {5, 6}}));
  const PipelineConfig chunks{.ranks = 2, .virtual_stages = 2, .layers_per_stage = {2, 2, 0, 0}};
  EXPECT_EQ(split_units(model, chunks), (std::vector<UnitRange>{{0, 3}, {3, 5}, {5, 5}, {5, 6}}));
  for (const Layers& list : {Layers{2, 0, 2}, Layers{5, 0, -1}, Layers{4, 0}}) {
    EXPECT_THROW(split_units(model, {.ranks = 3, .layers_per_stage = list}), Error);
  }
}

}  // namespace
}  // namespace zl
