// Profiles of a pipeline's stages, taken from recordings of short stages: what each pass of a
// micro-batch holds and takes, for any number of layers.
// Ownership: values. Threads: pure functions.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "simulator/planner/next_pass.h"
#include "simulator/planner/pass_program.h"
#include "simulator/planner/segment.h"
#include "simulator/processor_sharing.h"
#include "simulator/timeline.h"

namespace zl::sim {

// The passes that differ. Backwards in halves: `backward` is that of the input.
enum class StagePass : std::uint8_t {
  forward,
  first_forward,  // of the step: weights may still be arriving
  backward,
  first_backward,  // of the step: there is nothing to add to
  last_backward,   // of the step: gradients are reduced; of one micro-batch, the
                   // first as well
  weight,
  first_weight,
  last_weight,
  // Both halves at once, of schedules that halve some backwards only.
  whole_backward,
  first_whole_backward,
  last_whole_backward
};
inline constexpr std::size_t kStagePasses = 11;
inline bool is_weight(StagePass pass) {
  return pass == StagePass::weight || pass == StagePass::first_weight ||
         pass == StagePass::last_weight;
}

// What a step does after its passes, between the meetings of all ranks of a pipeline: up to the
// largest gradient of all, the norm, the loss, and to the first pass of the next step.
inline constexpr std::size_t kStepParts = 4;

// Which end of the model a stage has.
enum class StagePlace : std::uint8_t { first, middle, last, whole };
inline constexpr std::size_t kStagePlaces = 4;

// One recorded rank of a short pipeline. `group` layers that are recomputed together are what the
// profile calls a layer.
struct RecordedStage {
  StagePlace place = StagePlace::whole;
  std::int64_t group = 1;
  RankTrace trace;
  const Timeline* timeline = nullptr;
  const ClusterSpec* cluster = nullptr;  // that it was priced on
};

// Bytes, or picoseconds, that grow with the layers of a rank.
struct PerLayer {
  std::int64_t base = 0, layer = 0;

  std::int64_t of(std::int64_t layers) const { return base + layers * layer; }
};

struct StageProfile {
  // Without what is brought for the pass after.
  std::array<LayerSeries, kStagePasses> passes;
  std::array<SeriesWork, kStagePasses> works;  // likewise
  std::array<Lead, 2> leads;                   // as StageWeights
  PerLayer held;           // device bytes between the steps, without places for ids
  PerLayer before_all;     // the most before the first step
  std::int64_t slot = 0;   // ids of one micro-batch on its way
  PerLayer step_end_peak;  // device bytes more than `held`, in what a step does
                           // for all of it
  std::array<PerLayer, kStepParts> step_parts;

  Segment pass(StagePass which, std::int64_t layers) const {
    return passes[static_cast<std::size_t>(which)].of(layers);
  }
};

// Of all places of one kind of configuration.
struct StageProfiles {
  std::array<StageProfile, kStagePlaces> at;
  std::int64_t message = 0;  // bytes of a stream, or its gradient, between stages
  std::int64_t group = 1;    // layers that each of the profiles' stands for
  double overlap_loss = 0;   // as RankStreams
  bool messages_apart = false, reduces_last = false;  // as PipelineCosts
  SharedCores cores = {};                             // likewise
  std::int64_t exchanged = 0;  // bytes of a table's gradient, between the ends of the model
  // Whether layers in the middle of a stage hold the same and every byte is given back: then the
  // closed form's memory is the recording's. Else it is near.
  bool is_exact = true;

  const StageProfile& of(StagePlace place) const { return at[static_cast<std::size_t>(place)]; }
  StageWeights weights_of(StagePlace place, std::int64_t layers) const;
  // Whole backwards as in a recording that halves none.
  void take_whole_backwards(const StageProfiles& whole);
};

inline constexpr std::int32_t kProfiledStep = 2;

// The long stages' layers: the first, two alike in the middle, the last.
inline constexpr std::int64_t kProfiledLayers = 4;

// From the second step of recordings with stages of one layer and of kProfiledLayers, each with the
// same places; all of one of them are priced together.
StageProfiles profile_stages(std::span<const RecordedStage> single,
                             std::span<const RecordedStage> several);

}  // namespace zl::sim
