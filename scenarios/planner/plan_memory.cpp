#include "scenarios/planner/plan_memory.h"

#include <algorithm>

#include "scenarios/files/clusters.h"
#include "scenarios/run/software_bytes.h"

namespace zl {

PlanMemory::PlanMemory(const Scenario& scenario, const sim::PlanSpace& space, std::int64_t budget)
    : scenario_(scenario),
      space_(space),
      budget_(budget),
      parameters_(scenario.model.parameters()) {
  const std::string name = scenario_software(scenario);
  if (name.empty() || name == kOwnSoftware) return;
  software_ = load_software(name);
  if (!software_->held) software_.reset();
  for (Strategy strategy : space.states) {
    for (const bool is_cut : {false, true}) {
      strategy.tensor.ranks = is_cut ? 2 : 1;
      known_.push_back(software_ &&
                       sim::why_not_held(scenario.model, strategy, *software_->held).empty());
    }
  }
}

bool PlanMemory::knows(const sim::PlanPoint& point) const {
  const bool is_cut = space_.tensor[point.tensor] * space_.pipeline[point.pipeline] > 1;
  return !known_.empty() && known_[2 * point.state + (is_cut ? 1 : 0)];
}

std::int64_t PlanMemory::least(const sim::PlanPoint& point,
                               const sim::PlanSpace::Division& division) const {
  const sim::SoftwareMemory& memory = *software_->held;
  const Strategy& state = space_.states[point.state];
  if (state.offload.any()) return 0;
  const double shards =
      static_cast<double>(division.data) / static_cast<double>(space_.replicas[point.replicas]);
  const auto sharded = [&](int stage, std::int64_t bytes) {
    return static_cast<double>(bytes) / (state.zero.stage >= stage ? shards : 1);
  };
  const bool is_16_bit = state.precision.compute_dtype != DType::f32;
  const double bytes = is_16_bit ? sharded(memory.gathers_from, memory.weight) +
                                       sharded(2, memory.gradient) +
                                       sharded(1, memory.master + memory.moments)
                                 : sharded(memory.gathers_from, 4) + sharded(2, 4) + sharded(1, 8);
  const std::int64_t model = space_.tensor[point.tensor] * space_.pipeline[point.pipeline];
  return static_cast<std::int64_t>(bytes * static_cast<double>(parameters_) /
                                   static_cast<double>(model));
}

bool PlanMemory::could_fit(std::int64_t least) const {
  if (budget_ == 0) return true;
  const sim::SoftwareMemory& memory = *software_->held;
  const double error = std::max(memory.error, memory.unsupported_error);
  return SoftwareBytes::low_of(error) * static_cast<double>(least) +
             static_cast<double>(memory.context + memory.library) <=
         static_cast<double>(budget_);
}

std::optional<PlanMemory::Held> PlanMemory::fitting(const sim::PlanPoint& point) const {
  const bool is_automatic = space_.recompute[point.recompute].mode == RecomputeMode::automatic;
  if (!is_automatic) {
    const HeldBySoftware all = held(point, {});
    return fits(all) ? std::optional(Held{{}, all.in_use}) : std::nullopt;
  }
  const std::int64_t stages = space_.pipeline[point.pipeline] * space_.chunks[point.chunks];
  const auto of_each = [&](std::int64_t blocks) { return std::vector(stages, blocks); };
  std::int64_t low = 1, high = scenario_.model.layers / stages - 1;
  if (const HeldBySoftware none = held(point, of_each(0)); fits(none)) {
    return space_.has(RecomputeMode::none) ? std::nullopt
                                           : std::optional(Held{of_each(0), none.in_use});
  }
  if (high < low || !fits(held(point, of_each(high)))) return std::nullopt;
  while (low < high) {
    const std::int64_t middle = (low + high) / 2;
    if (fits(held(point, of_each(middle)))) {
      high = middle;
    } else {
      low = middle + 1;
    }
  }
  return Held{of_each(low), held(point, of_each(low)).in_use};
}

HeldBySoftware PlanMemory::held(const sim::PlanPoint& point,
                                const std::vector<std::int64_t>& blocks) const {
  const auto bytes = bytes_under(*software_, scenario_, space_.strategy(point, blocks)).bytes;
  return bytes ? bytes->of_device() : HeldBySoftware();
}

}  // namespace zl
