#include "simulator/planner/closed_form.h"

#include <algorithm>
#include <span>
#include <vector>

#include "simulator/planner/rank_memory.h"

namespace zl::sim {
namespace {

// From one meeting of all ranks to the next the slowest of them decides, the ends of their passes
// first.
std::int64_t step_time(const StageProfiles& profiles, const PipelineForm& form,
                       const std::vector<std::int64_t>& layers, std::int64_t exchange,
                       std::vector<std::int64_t> ends) {
  const std::span<const PipelineForm::Rank> ranks = form.ranks();
  std::size_t last = 0;
  while (!ranks[last].has(layers.size() - 1)) ++last;
  if (last > 0) {  // both ends have a copy of a table
    ends.front() = ends[last] = std::max(ends.front(), ends[last]) + exchange;
  }
  std::int64_t time = 0;
  for (std::size_t part = 0; part < kStepParts; ++part) {
    std::int64_t most = 0;
    for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
      const std::int64_t own =
          sum_of_stages(profiles, ranks[rank], layers,
                        [&](const StageProfile& profile) { return profile.step_parts[part]; });
      most = std::max(most, own + (part == 0 ? ends[rank] : 0));
    }
    time += most;
  }
  return time;
}

}  // namespace

StageMix MixedProfiles::of(std::size_t stage, std::int64_t layers) const {
  const std::int64_t count = again == nullptr || blocks.empty() ? 0 : blocks[stage];
  if (count == 0) return {all};
  if (count >= layers) return {*again};
  return {all, again, count};
}

ClosedForm closed_form(const MixedProfiles& mixed, std::int64_t layers,
                       std::int64_t micro_batches) {
  const StageProfiles& profiles = mixed.all;
  const StageProfile& profile = profiles.of(StagePlace::whole);
  const StageMix mix = mixed.of(0, layers);
  const StagePasses stage = passes_of(mix, StagePlace::whole, layers, true);
  const std::int64_t kept = stage.of(StagePass::forward).net;
  std::int64_t most =
      std::max({stage.of(StagePass::forward).peak, kept + stage.of(StagePass::last_backward).peak,
                profile.step_end_peak.of(layers)});
  if (micro_batches > 1) most = std::max(most, kept + stage.of(StagePass::backward).peak);
  ClosedForm form;
  form.memory =
      profile.slot + std::max(profile.held.of(layers) + most, profile.before_all.of(layers));
  form.time = PipelineOrder::time_alone(costs_of(mix, StagePlace::whole, layers), micro_batches,
                                        profiles.overlap_loss);
  for (const PerLayer& part : profile.step_parts) form.time += part.of(layers);
  form.is_exact = mixed.is_exact();
  return form;
}

ClosedForm closed_form(const MixedProfiles& mixed, const PipelineForm& form,
                       const std::vector<std::int64_t>& layers, const PipelineLinks& links,
                       std::int64_t left_out) {
  const StageProfiles& profiles = mixed.all;
  std::vector<StagePasses> stages;
  std::vector<StageCosts> costs;
  const bool has_rank = form.ranks().front().stages.size() == 1;
  const auto blocks = [&](std::size_t index) {
    return mixed.blocks.empty() ? 0 : mixed.blocks[index];
  };
  for (std::size_t index = 0; index < layers.size(); ++index) {
    const StagePlace place = place_of(index, layers.size());
    // Stages in the middle differ by their numbers of layers and blocks only.
    const bool same = index > 1 && place == StagePlace::middle &&
                      layers[index] == layers[index - 1] && blocks(index) == blocks(index - 1);
    const StageMix mix = mixed.of(index, layers[index]);
    stages.push_back(same ? stages.back() : passes_of(mix, place, layers[index], has_rank));
    costs.push_back(same ? costs.back() : costs_of(mix, place, layers[index]));
  }
  ClosedForm result{.is_exact = mixed.is_exact()};
  for (const PipelineForm::Rank& rank : form.ranks()) {
    result.memory = std::max(result.memory, RankMemory(profiles, rank, stages, layers).peak());
  }
  result.time =
      step_time(profiles, form, layers, links.exchange,
                form.ends({costs, links.hops, left_out, profiles.overlap_loss,
                           profiles.messages_apart, profiles.reduces_last, profiles.cores}));
  return result;
}

}  // namespace zl::sim
