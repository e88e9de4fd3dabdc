// What a rank of a pipeline holds at its fullest, all its stages together, from profiles.
// Ownership: refers to what it is made of. Threads: immutable.
#pragma once

#include <cstdint>
#include <vector>

#include "simulator/planner/pipeline_form.h"
#include "simulator/planner/stage_passes.h"

namespace zl::sim {

// Of a rank with several stages. The ends of the model bring what a middle stage does not have.
template <class What>
std::int64_t sum_of_stages(const StageProfiles& profiles, const PipelineForm::Rank& rank,
                           const std::vector<std::int64_t>& layers, const What& what) {
  const std::int64_t middle = what(profiles.of(StagePlace::middle)).base;
  std::int64_t sum = middle;
  for (const int each : rank.stages) {
    const auto stage = static_cast<std::size_t>(each);
    const PerLayer own = what(profiles.of(place_of(stage, layers.size())));
    sum += own.of(layers[stage]) - middle;
  }
  return sum;
}

class RankMemory {
 public:
  // stages: of the whole pipeline, those of the rank filled in. layers: of each.
  RankMemory(const StageProfiles& profiles, const PipelineForm::Rank& rank,
             const std::vector<StagePasses>& stages, const std::vector<std::int64_t>& layers)
      : profiles_(profiles), rank_(rank), stages_(stages), layers_(layers) {}

  std::int64_t peak() const;

 private:
  std::int64_t peak_of(const HeldMoment& moment) const;
  std::int64_t bytes_of(const NextPass& next) const;
  std::int64_t held(PerLayer StageProfile::*what) const;
  std::int64_t step_end_peak() const;
  const PerLayer& step_end(StagePlace place) const;
  std::size_t stage(std::size_t chunk) const {
    return static_cast<std::size_t>(rank_.stages[chunk]);
  }

  const StageProfiles& profiles_;
  const PipelineForm::Rank& rank_;
  const std::vector<StagePasses>& stages_;
  const std::vector<std::int64_t>& layers_;
};

}  // namespace zl::sim
