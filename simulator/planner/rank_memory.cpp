#include "simulator/planner/rank_memory.h"

#include <algorithm>

namespace zl::sim {

std::int64_t RankMemory::peak() const {
  std::int64_t most = step_end_peak();
  for (const HeldMoment& moment : rank_.moments) most = std::max(most, peak_of(moment));
  return std::max(held(&StageProfile::held) + most, held(&StageProfile::before_all));
}

std::int64_t RankMemory::peak_of(const HeldMoment& moment) const {
  std::int64_t bytes = moment.messages * profiles_.message;
  for (std::size_t chunk = 0; chunk < rank_.stages.size(); ++chunk) {
    const StagePasses& own = stages_[stage(chunk)];
    const std::int32_t* counts = &rank_.counts[moment.held + 2 * chunk];
    const std::int64_t forward = own.of(StagePass::forward).net;
    bytes += counts[0] * forward + counts[1] * (forward + own.of(StagePass::backward).net);
  }
  const std::int64_t brought = bytes_of(moment.next);
  if (!moment.is_pass) return bytes + brought;
  const StagePasses& own = stages_[stage(static_cast<std::size_t>(moment.chunk))];
  const PassSegments& pass = own.passes[static_cast<std::size_t>(moment.pass)];
  return bytes + (is_weight(moment.pass) ? pass.all.peak + brought : pass.peak(brought));
}

// Weights that are here for the pass to come.
std::int64_t RankMemory::bytes_of(const NextPass& next) const {
  if (next.stage < 0) return 0;
  const StageWeights& weights = stages_[static_cast<std::size_t>(next.stage)].weights;
  return next.is_brought(weights) ? next.lead(weights).bytes : 0;
}

std::int64_t RankMemory::held(PerLayer StageProfile::*what) const {
  std::int64_t bytes =
      sum_of_stages(profiles_, rank_, layers_, [&](const StageProfile& own) { return own.*what; });
  for (std::size_t chunk = 0; chunk < rank_.stages.size(); ++chunk) {
    const StageProfile& own = profiles_.of(place_of(stage(chunk), stages_.size()));
    bytes += rank_.in_flight[chunk] * own.slot;
  }
  return bytes;
}

std::int64_t RankMemory::step_end_peak() const {
  std::int64_t bytes = 0;
  for (std::size_t chunk = 0; chunk < rank_.stages.size(); ++chunk) {
    const PerLayer& own = step_end(place_of(stage(chunk), stages_.size()));
    bytes = std::max(bytes, own.of(layers_[stage(chunk)]));
  }
  return bytes;
}

// A rank with both ends of the model takes no gradient from another; what the host has it brings
// twice.
const PerLayer& RankMemory::step_end(StagePlace place) const {
  const PerLayer& own = profiles_.of(place).step_end_peak;
  const bool exchanges = profiles_.exchanged > 0 && own.base < 2 * profiles_.exchanged;
  const bool has_both = rank_.has(0) && rank_.has(stages_.size() - 1);
  return exchanges && has_both ? profiles_.of(StagePlace::middle).step_end_peak : own;
}

}  // namespace zl::sim
