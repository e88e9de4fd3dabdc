#include "simulator/planner/closed_form.h"

#include <algorithm>
#include <array>
#include <span>
#include <vector>

namespace zl::sim {
namespace {

// A pass, and what of it is of its last unit.
struct Pass {
  Segment all, end;

  // With weights of the pass after, which are brought in its last unit.
  std::int64_t peak(std::int64_t brought) const {
    return std::max(all.peak, all.net - end.net + end.peak + brought);
  }
};

struct Stage {
  std::array<Pass, kStagePasses> passes;
  StageCosts costs;

  const Segment& of(StagePass pass) const { return passes[static_cast<std::size_t>(pass)].all; }
};

bool is_forward(std::size_t pass) {
  const auto which = static_cast<StagePass>(pass);
  return which == StagePass::forward || which == StagePass::first_forward;
}

// Backwards come to the first layers last.
Pass mixed_pass(const MixedProfiles& mixed, StagePlace place, std::size_t pass, std::int64_t layers,
                bool has_rank, std::int64_t freed) {
  const LayerSeries& kept = mixed.all.of(place).passes[pass];
  if (mixed.again == nullptr) return {kept.of(layers, has_rank), kept.tail_of(layers, has_rank)};
  const LayerSeries& again = mixed.again->of(place).passes[pass];
  if (is_forward(pass)) {
    return {sim::mixed(again, mixed.blocks, kept, layers, freed), kept.tail_of(layers, has_rank)};
  }
  return {sim::mixed(kept, layers - mixed.blocks, again, layers), again.tail_of(layers, has_rank)};
}

// As mixed_pass().
PassProgram program_of(const MixedProfiles& mixed, StagePlace place, std::size_t pass,
                       std::int64_t layers) {
  const StageProfile& kept = mixed.all.of(place);
  const std::int64_t more = kept.passes[pass].more(layers);
  if (mixed.again == nullptr) return program_of(kept.works[pass], layers, more);
  const SeriesWork& again = mixed.again->of(place).works[pass];
  if (is_forward(pass)) {
    return mixed_program(again, mixed.blocks, kept.works[pass], layers, more);
  }
  return mixed_program(kept.works[pass], layers - mixed.blocks, again, layers,
                       mixed.again->of(place).passes[pass].more(layers));
}

StageCosts costs_of(const MixedProfiles& mixed, StagePlace place, std::int64_t layers) {
  StageCosts costs{.passes = {}, .weights = mixed.all.weights_of(place, layers)};
  for (std::size_t pass = 0; pass < kStagePasses; ++pass) {
    costs.passes[pass] = program_of(mixed, place, pass, layers);
  }
  return costs;
}

// A block that is recomputed hands on what the next one frees; one that is not keeps it. What a
// micro-batch takes it gives back: what is left over is that.
Stage stage_of(const MixedProfiles& mixed, StagePlace place, std::int64_t layers, bool has_rank) {
  Stage stage{.passes = {}, .costs = costs_of(mixed, place, layers)};
  const auto fill = [&](std::size_t pass, std::int64_t freed) {
    stage.passes[pass] = mixed_pass(mixed, place, pass, layers, has_rank, freed);
  };
  for (std::size_t i = 0; i < kStagePasses; ++i) fill(i, 0);
  if (mixed.again == nullptr) return stage;
  const std::int64_t freed = stage.of(StagePass::forward).net + stage.of(StagePass::backward).net +
                             stage.of(StagePass::weight).net;
  for (std::size_t i = 0; i < kStagePasses; ++i) {
    if (is_forward(i)) fill(i, freed);
  }
  return stage;
}

bool is_exact(const MixedProfiles& mixed) {
  return mixed.all.is_exact && (mixed.again == nullptr || mixed.again->is_exact);
}

StagePlace place_of(std::size_t stage, std::size_t stages) {
  if (stage == 0) return StagePlace::first;
  return stage + 1 == stages ? StagePlace::last : StagePlace::middle;
}

bool has(const PipelineForm::Rank& rank, std::size_t stage) {
  return std::ranges::find(rank.stages, static_cast<int>(stage)) != rank.stages.end();
}

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

// A rank with several stages.
class RankMemory {
 public:
  RankMemory(const StageProfiles& profiles, const PipelineForm::Rank& rank,
             const std::vector<Stage>& stages, const std::vector<std::int64_t>& layers)
      : profiles_(profiles), rank_(rank), stages_(stages), layers_(layers) {}

  std::int64_t peak() const {
    std::int64_t most = step_end_peak();
    for (const HeldMoment& moment : rank_.moments) most = std::max(most, peak_of(moment));
    return std::max(held(&StageProfile::held) + most, held(&StageProfile::before_all));
  }

 private:
  std::int64_t peak_of(const HeldMoment& moment) const {
    std::int64_t bytes = moment.messages * profiles_.message;
    for (std::size_t chunk = 0; chunk < rank_.stages.size(); ++chunk) {
      const Stage& own = stages_[stage(chunk)];
      const std::int32_t* counts = &rank_.counts[moment.held + 2 * chunk];
      const std::int64_t forward = own.of(StagePass::forward).net;
      bytes += counts[0] * forward + counts[1] * (forward + own.of(StagePass::backward).net);
    }
    const std::int64_t brought = bytes_of(moment.next);
    if (!moment.is_pass) return bytes + brought;
    const Stage& own = stages_[stage(static_cast<std::size_t>(moment.chunk))];
    const Pass& pass = own.passes[static_cast<std::size_t>(moment.pass)];
    return bytes + (is_weight(moment.pass) ? pass.all.peak + brought : pass.peak(brought));
  }

  // Weights that are here for the pass to come.
  std::int64_t bytes_of(const NextPass& next) const {
    if (next.stage < 0) return 0;
    const StageWeights& weights = stages_[static_cast<std::size_t>(next.stage)].costs.weights;
    return next.is_brought(weights) ? next.lead(weights).bytes : 0;
  }

  std::int64_t held(PerLayer StageProfile::*what) const {
    std::int64_t bytes = sum_of_stages(profiles_, rank_, layers_,
                                       [&](const StageProfile& own) { return own.*what; });
    for (std::size_t chunk = 0; chunk < rank_.stages.size(); ++chunk) {
      const StageProfile& own = profiles_.of(place_of(stage(chunk), stages_.size()));
      bytes += rank_.in_flight[chunk] * own.slot;
    }
    return bytes;
  }

  std::int64_t step_end_peak() const {
    std::int64_t bytes = 0;
    for (std::size_t chunk = 0; chunk < rank_.stages.size(); ++chunk) {
      const PerLayer& own = step_end(place_of(stage(chunk), stages_.size()));
      bytes = std::max(bytes, own.of(layers_[stage(chunk)]));
    }
    return bytes;
  }

  // A rank with both ends of the model takes no gradient from another; what the host has it brings
  // twice.
  const PerLayer& step_end(StagePlace place) const {
    const PerLayer& own = profiles_.of(place).step_end_peak;
    const bool exchanges = profiles_.exchanged > 0 && own.base < 2 * profiles_.exchanged;
    const bool has_both = has(rank_, 0) && has(rank_, stages_.size() - 1);
    return exchanges && has_both ? profiles_.of(StagePlace::middle).step_end_peak : own;
  }

  std::size_t stage(std::size_t chunk) const {
    return static_cast<std::size_t>(rank_.stages[chunk]);
  }

  const StageProfiles& profiles_;
  const PipelineForm::Rank& rank_;
  const std::vector<Stage>& stages_;
  const std::vector<std::int64_t>& layers_;
};

// From one meeting of all ranks to the next the slowest of them decides, the ends of their passes
// first.
std::int64_t step_time(const StageProfiles& profiles, const PipelineForm& form,
                       const std::vector<std::int64_t>& layers, std::int64_t exchange,
                       std::vector<std::int64_t> ends) {
  const std::span<const PipelineForm::Rank> ranks = form.ranks();
  std::size_t last = 0;
  while (!has(ranks[last], layers.size() - 1)) ++last;
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

ClosedForm closed_form(const MixedProfiles& mixed, std::int64_t layers,
                       std::int64_t micro_batches) {
  const StageProfiles& profiles = mixed.all;
  const StageProfile& profile = profiles.of(StagePlace::whole);
  const Stage stage = stage_of(mixed, StagePlace::whole, layers, true);
  const std::int64_t kept = stage.of(StagePass::forward).net;
  std::int64_t most =
      std::max({stage.of(StagePass::forward).peak, kept + stage.of(StagePass::last_backward).peak,
                profile.step_end_peak.of(layers)});
  if (micro_batches > 1) most = std::max(most, kept + stage.of(StagePass::backward).peak);
  ClosedForm form;
  form.memory =
      profile.slot + std::max(profile.held.of(layers) + most, profile.before_all.of(layers));
  form.time = PipelineOrder::time_alone(stage.costs, micro_batches, profiles.overlap_loss);
  for (const PerLayer& part : profile.step_parts) form.time += part.of(layers);
  form.is_exact = is_exact(mixed);
  return form;
}

ClosedForm closed_form(const MixedProfiles& mixed, const PipelineForm& form,
                       const std::vector<std::int64_t>& layers, const PipelineLinks& links,
                       std::int64_t left_out) {
  const StageProfiles& profiles = mixed.all;
  std::vector<Stage> stages;
  std::vector<StageCosts> costs;
  const bool has_rank = form.ranks().front().stages.size() == 1;
  for (std::size_t index = 0; index < layers.size(); ++index) {
    const StagePlace place = place_of(index, layers.size());
    // Stages in the middle differ by their number of layers only.
    const bool same =
        index > 1 && place == StagePlace::middle && layers[index] == layers[index - 1];
    stages.push_back(same ? stages.back() : stage_of(mixed, place, layers[index], has_rank));
    costs.push_back(stages.back().costs);
  }
  ClosedForm result{.is_exact = is_exact(mixed)};
  for (const PipelineForm::Rank& rank : form.ranks()) {
    result.memory = std::max(result.memory, RankMemory(profiles, rank, stages, layers).peak());
  }
  result.time = step_time(profiles, form, layers, links.exchange,
                          form.ends({costs, links.hops, left_out, profiles.overlap_loss,
                                     profiles.messages_apart, profiles.reduces_last}));
  return result;
}

}  // namespace zl::sim
