#include "simulator/planner/stage_passes.h"

namespace zl::sim {
namespace {

bool is_forward(std::size_t pass) {
  const auto which = static_cast<StagePass>(pass);
  return which == StagePass::forward || which == StagePass::first_forward;
}

// Backwards come to the first layers last.
PassSegments mixed_pass(const StageMix& mix, StagePlace place, std::size_t pass,
                        std::int64_t layers, bool has_rank, std::int64_t freed) {
  const LayerSeries& kept = mix.kept.of(place).passes[pass];
  if (mix.again == nullptr) return {kept.of(layers, has_rank), kept.tail_of(layers, has_rank)};
  const LayerSeries& again = mix.again->of(place).passes[pass];
  if (is_forward(pass)) {
    return {mixed(again, mix.blocks, kept, layers, freed), kept.tail_of(layers, has_rank)};
  }
  return {mixed(kept, layers - mix.blocks, again, layers), again.tail_of(layers, has_rank)};
}

// As mixed_pass().
PassProgram program_of(const StageMix& mix, StagePlace place, std::size_t pass,
                       std::int64_t layers) {
  const StageProfile& kept = mix.kept.of(place);
  const std::int64_t more = kept.passes[pass].more(layers);
  if (mix.again == nullptr) return program_of(kept.works[pass], layers, more);
  const SeriesWork& again = mix.again->of(place).works[pass];
  if (is_forward(pass)) {
    return mixed_program(again, mix.blocks, kept.works[pass], layers, more);
  }
  return mixed_program(kept.works[pass], layers - mix.blocks, again, layers,
                       mix.again->of(place).passes[pass].more(layers));
}

}  // namespace

StageCosts costs_of(const StageMix& mix, StagePlace place, std::int64_t layers) {
  StageCosts costs{.passes = {}, .weights = mix.kept.weights_of(place, layers)};
  for (std::size_t pass = 0; pass < kStagePasses; ++pass) {
    costs.passes[pass] = program_of(mix, place, pass, layers);
  }
  return costs;
}

// A block that is recomputed hands on what the next one frees; one that is not keeps it. What a
// micro-batch takes it gives back: what is left over is that.
StagePasses passes_of(const StageMix& mix, StagePlace place, std::int64_t layers, bool has_rank) {
  StagePasses stage{.passes = {}, .weights = mix.kept.weights_of(place, layers)};
  const auto fill = [&](std::size_t pass, std::int64_t freed) {
    stage.passes[pass] = mixed_pass(mix, place, pass, layers, has_rank, freed);
  };
  for (std::size_t i = 0; i < kStagePasses; ++i) fill(i, 0);
  if (mix.again == nullptr) return stage;
  const std::int64_t freed = stage.of(StagePass::forward).net + stage.of(StagePass::backward).net +
                             stage.of(StagePass::weight).net;
  for (std::size_t i = 0; i < kStagePasses; ++i) {
    if (is_forward(i)) fill(i, freed);
  }
  return stage;
}

StagePlace place_of(std::size_t stage, std::size_t stages) {
  if (stage == 0) return StagePlace::first;
  return stage + 1 == stages ? StagePlace::last : StagePlace::middle;
}

}  // namespace zl::sim
