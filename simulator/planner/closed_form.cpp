#include "simulator/planner/closed_form.h"

#include <algorithm>
#include <array>

namespace zl::sim {
namespace {

using Passes = std::array<Segment, kStagePasses>;

const Segment& pass_at(const Passes& passes, StagePass pass) {
  return passes[static_cast<std::size_t>(pass)];
}

bool is_forward(std::size_t pass) {
  const auto which = static_cast<StagePass>(pass);
  return which == StagePass::forward || which == StagePass::first_forward;
}

// Backwards come to the first layers last.
Segment mixed_pass(const MixedProfiles& mixed, StagePlace place, std::size_t pass,
                   std::int64_t layers, std::int64_t freed) {
  const LayerSeries& kept = mixed.all.of(place).passes[pass];
  if (mixed.again == nullptr) return kept.of(layers);
  const LayerSeries& again = mixed.again->of(place).passes[pass];
  return is_forward(pass) ? sim::mixed(again, mixed.blocks, kept, layers, freed)
                          : sim::mixed(kept, layers - mixed.blocks, again, layers);
}

// A block that is recomputed hands on what the next one frees; one that is not keeps it. What a
// micro-batch takes it gives back: what is left over is that.
Passes passes_of(const MixedProfiles& mixed, StagePlace place, std::int64_t layers) {
  Passes passes;
  const auto fill = [&](std::size_t pass, std::int64_t freed) {
    passes[pass] = mixed_pass(mixed, place, pass, layers, freed);
  };
  for (std::size_t i = 0; i < kStagePasses; ++i) fill(i, 0);
  if (mixed.again == nullptr) return passes;
  const std::int64_t freed = pass_at(passes, StagePass::forward).net +
                             pass_at(passes, StagePass::backward).net +
                             pass_at(passes, StagePass::weight).net;
  for (std::size_t i = 0; i < kStagePasses; ++i) {
    if (is_forward(i)) fill(i, freed);
  }
  return passes;
}

bool is_exact(const MixedProfiles& mixed) {
  return mixed.all.is_exact && (mixed.again == nullptr || mixed.again->is_exact);
}

StagePlace place_of(std::size_t stage, std::size_t stages) {
  if (stage == 0) return StagePlace::first;
  return stage + 1 == stages ? StagePlace::last : StagePlace::middle;
}

PassCosts costs_of(const Passes& passes) {
  PassCosts costs;
  for (std::size_t i = 0; i < kStagePasses; ++i) costs[i] = {passes[i].duration(), passes[i].sent};
  return costs;
}

// What the first pass of a step waits for, and the last has to reduce.
std::int64_t ends_of(const Passes& passes) {
  const auto more = [&](StagePass special, StagePass usual) {
    return std::max<std::int64_t>(
        0, pass_at(passes, special).duration() - pass_at(passes, usual).duration());
  };
  return more(StagePass::first_forward, StagePass::forward) +
         more(StagePass::last_backward, StagePass::backward);
}

// A rank with several stages.
class RankMemory {
 public:
  RankMemory(const StageProfiles& profiles, const PipelineForm::Rank& rank,
             const std::vector<Passes>& passes, const std::vector<std::int64_t>& layers)
      : profiles_(profiles), rank_(rank), passes_(passes), layers_(layers) {}

  std::int64_t peak() const {
    std::int64_t most = step_end_peak();
    for (const HeldMoment& moment : rank_.moments) most = std::max(most, peak_of(moment));
    return std::max(held(&StageProfile::held) + most, held(&StageProfile::before_all));
  }

 private:
  std::int64_t peak_of(const HeldMoment& moment) const {
    std::int64_t bytes = moment.messages * profiles_.message;
    for (std::size_t chunk = 0; chunk < rank_.stages.size(); ++chunk) {
      const Passes& own = passes_[stage(chunk)];
      const std::int32_t* counts = &rank_.counts[moment.held + 2 * chunk];
      const std::int64_t forward = pass_at(own, StagePass::forward).net;
      bytes += counts[0] * forward + counts[1] * (forward + pass_at(own, StagePass::backward).net);
    }
    if (!moment.is_pass) return bytes;
    return bytes +
           pass_at(passes_[stage(static_cast<std::size_t>(moment.chunk))], moment.pass).peak;
  }

  // The ends of the model bring what a middle stage does not have.
  std::int64_t held(PerLayer StageProfile::*what) const {
    const PerLayer& middle = profiles_.of(StagePlace::middle).*what;
    std::int64_t bytes = middle.base;
    for (std::size_t chunk = 0; chunk < rank_.stages.size(); ++chunk) {
      const StageProfile& own = profiles_.of(place_of(stage(chunk), passes_.size()));
      bytes += (own.*what).of(layers_[stage(chunk)]) - middle.base;
      bytes += rank_.in_flight[chunk] * own.slot;
    }
    return bytes;
  }

  std::int64_t step_end_peak() const {
    std::int64_t bytes = 0;
    for (std::size_t chunk = 0; chunk < rank_.stages.size(); ++chunk) {
      const StageProfile& own = profiles_.of(place_of(stage(chunk), passes_.size()));
      bytes = std::max(bytes, own.step_end_peak.of(layers_[stage(chunk)]));
    }
    return bytes;
  }

  std::size_t stage(std::size_t chunk) const {
    return static_cast<std::size_t>(rank_.stages[chunk]);
  }

  const StageProfiles& profiles_;
  const PipelineForm::Rank& rank_;
  const std::vector<Passes>& passes_;
  const std::vector<std::int64_t>& layers_;
};

}  // namespace

ClosedForm closed_form(const MixedProfiles& mixed, std::int64_t layers,
                       std::int64_t micro_batches) {
  const StageProfiles& profiles = mixed.all;
  const StageProfile& profile = profiles.of(StagePlace::whole);
  const Passes passes = passes_of(mixed, StagePlace::whole, layers);
  const std::int64_t kept = pass_at(passes, StagePass::forward).net;
  std::int64_t most = std::max({pass_at(passes, StagePass::forward).peak,
                                kept + pass_at(passes, StagePass::last_backward).peak,
                                profile.step_end_peak.of(layers)});
  if (micro_batches > 1) most = std::max(most, kept + pass_at(passes, StagePass::backward).peak);
  ClosedForm form;
  form.memory =
      profile.slot + std::max(profile.held.of(layers) + most, profile.before_all.of(layers));
  form.time = micro_batches * (pass_at(passes, StagePass::forward).duration() +
                               pass_at(passes, StagePass::backward).duration()) +
              ends_of(passes) + profiles.between_steps.of(layers);
  form.is_exact = is_exact(mixed);
  return form;
}

ClosedForm closed_form(const MixedProfiles& mixed, const PipelineForm& form,
                       const std::vector<std::int64_t>& layers, std::int64_t message) {
  const StageProfiles& profiles = mixed.all;
  std::vector<Passes> passes;
  std::vector<PassCosts> costs;
  for (std::size_t stage = 0; stage < layers.size(); ++stage) {
    const StagePlace place = place_of(stage, layers.size());
    // Stages in the middle differ by their number of layers only.
    const bool same =
        stage > 1 && place == StagePlace::middle && layers[stage] == layers[stage - 1];
    passes.push_back(same ? passes.back() : passes_of(mixed, place, layers[stage]));
    costs.push_back(costs_of(passes.back()));
  }
  ClosedForm result{.is_exact = is_exact(mixed)};
  std::int64_t most_layers = 0;  // of a rank
  for (const PipelineForm::Rank& rank : form.ranks()) {
    result.memory = std::max(result.memory, RankMemory(profiles, rank, passes, layers).peak());
    std::int64_t own = 0;
    for (const int stage : rank.stages) own += layers[static_cast<std::size_t>(stage)];
    most_layers = std::max(most_layers, own);
  }
  result.time = form.makespan(costs, message) + profiles.between_steps.of(most_layers);
  return result;
}

}  // namespace zl::sim
