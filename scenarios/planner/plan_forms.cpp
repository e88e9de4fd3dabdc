// What PlanProfiles puts together from profiles.
#include <numeric>

#include "scenarios/planner/plan_profiles.h"
#include "simulator/planner/fewest_blocks.h"

namespace zl {

std::int64_t PlanProfiles::stages_of(const sim::PlanPoint& point) const {
  return space_.pipeline[point.pipeline] * space_.chunks[point.chunks];
}

std::optional<sim::MixedProfiles> PlanProfiles::mixed(
    const sim::PlanPoint& point, const sim::PlanSpace::Division& division,
    const std::vector<std::int64_t>& blocks) const {
  const auto profile = [&](std::uint16_t recompute) {
    return find(key_of(point, division, recompute));
  };
  const RecomputeConfig& config = space_.recompute[point.recompute];
  if (!space_.mixes(point)) {
    const sim::StageProfiles* const all = profile(point.recompute);
    return all == nullptr ? std::nullopt : std::optional(sim::MixedProfiles{*all});
  }
  const auto [plain, full] = parts_of_mix();
  const sim::StageProfiles *const kept = profile(plain), *const again = profile(full);
  if (kept == nullptr || again == nullptr) return std::nullopt;
  sim::MixedProfiles found{*kept, again, blocks};
  if (config.mode != RecomputeMode::first_blocks) return found;
  for (int stage = 0; stage < stages_of(point); ++stage) {
    found.blocks.push_back(config.blocks_of(stage));
  }
  return found;
}

std::optional<sim::ClosedForm> PlanProfiles::closed_form(
    const sim::PlanPoint& point, const sim::PlanSpace::Division& division,
    const std::vector<std::int64_t>& blocks) const {
  const auto profiles = mixed(point, division, blocks);
  if (!profiles) return std::nullopt;
  const std::int64_t pipeline = space_.pipeline[point.pipeline], group = profiles->all.group;
  if (pipeline == 1) {
    return sim::closed_form(*profiles, scenario_.model.layers / group, division.micro_batches);
  }
  const auto form = forms_.find(form_key(point, division));
  if (form == forms_.end()) return std::nullopt;
  std::vector<std::int64_t> layers = form->second->layers;
  for (std::int64_t& each : layers) each /= group;
  sim::ClosedForm found =
      sim::closed_form(*profiles, form->second->form, layers, links_of(profiles->all, pipeline),
                       steady_count_of(point, division).left_out);
  // The weights of one unit are brought ahead, and none stay: the catalogue's ZeRO-3.
  const ZeroConfig& zero = space_.states[point.state].zero;
  const bool is_plain =
      zero.overlap_comm && zero.prefetch_bucket_size > 0 && zero.max_reuse_distance == 0;
  found.is_exact = found.is_exact && (zero.stage < 3 || is_plain);
  return found;
}

std::optional<std::vector<std::int64_t>> PlanProfiles::fewest_blocks(
    const sim::PlanPoint& point, const sim::PlanSpace::Division& division,
    std::int64_t budget) const {
  const auto profiles = mixed(point, division, {});
  if (!profiles) return std::nullopt;
  const std::int64_t all = scenario_.model.layers;
  sim::FewestBlocks blocks;
  if (space_.pipeline[point.pipeline] == 1) {
    blocks = sim::fewest_blocks(*profiles, all, division.micro_batches, budget);
  } else {
    const auto form = forms_.find(form_key(point, division));
    if (form == forms_.end()) return std::nullopt;
    blocks = sim::fewest_blocks(*profiles, form->second->form, form->second->layers, budget,
                                space_.recomputes_by_stage);
  }
  if (!blocks) return std::nullopt;
  const std::int64_t sum = std::accumulate(blocks->begin(), blocks->end(), std::int64_t{0});
  // Another choice is the same.
  const bool is_other = (sum == 0 && space_.has(RecomputeMode::none)) ||
                        (sum == all && space_.has(RecomputeMode::full));
  return is_other ? std::nullopt : blocks;
}

}  // namespace zl
