#include "scenarios/planner/fit.h"

#include <algorithm>
#include <iterator>
#include <tuple>

#include "scenarios/files/strategy_file.h"

namespace zl {
namespace {

Choices stage_choices(const Strategy& strategy) {
  Choices choices{{}};
  for (int stage = strategy.zero.stage + 1; stage <= 3; ++stage) {
    choices.push_back(stage_change(strategy, stage));
  }
  return choices;
}

Choices recompute_choices(const Strategy& strategy) {
  Choices choices{{}};
  if (strategy.recompute.mode == RecomputeMode::full) return choices;
  if (strategy.recompute.mode != RecomputeMode::automatic) {
    choices.push_back(recompute_change(strategy, "auto"));
  }
  choices.push_back(recompute_change(strategy, "full"));
  return choices;
}

Choices batch_choices(const Strategy& strategy) {
  Choices choices{{}};
  const std::int64_t batch = strategy.micro_batch;
  if (batch > 1) {
    choices.push_back(batch_change(strategy, 1, strategy.gradient_accumulation * batch));
  }
  return choices;
}

Choices offload_choices(const Strategy& strategy) {
  if (strategy.offload.any()) return {{}};
  return {{}, optimizer_to_host(), optimizer_and_weights_to_host()};
}

}  // namespace

std::vector<Variation> fit_candidates(const Study& study, const StrategyStudy& strategy) {
  const Strategy& base = strategy.imported.strategy;
  std::vector<Variation> all = variations(
      study, strategy,
      {stage_choices(base), recompute_choices(base), batch_choices(base), offload_choices(base)});
  std::ranges::move(
      variations(study, strategy,
                 {recompute_choices(base), batch_choices(base), mesh_changes(study, base)}),
      std::back_inserter(all));
  return all;
}

Document fit_document(const Study& study, const std::vector<Variation>& candidates) {
  std::vector<std::string> strategies;
  for (const Variation& candidate : candidates) strategies.push_back(candidate.json);
  return study.document.with_strategies(strategies);
}

std::vector<FitAdvice> fit_advice(const Study& evaluated, const StrategyStudy& strategy,
                                  const std::vector<Variation>& candidates) {
  std::vector<FitAdvice> advice;
  for (const Variation& candidate : candidates) {
    const StrategyStudy* found = evaluated.find(candidate.name);
    if (found == nullptr || !found->fits()) continue;
    const double seconds = found->result.step_time.median;
    const double before = strategy.result.step_time.median;
    advice.push_back({&candidate, seconds, before > 0 ? seconds / before - 1 : 0,
                      found->result.peak_device.total(), found->reserved(),
                      zl::fits(found->result)});
  }
  std::stable_sort(advice.begin(), advice.end(), [](const FitAdvice& a, const FitAdvice& b) {
    const auto changes_a = a.candidate->changes.size(), changes_b = b.candidate->changes.size();
    return std::tie(changes_a, a.fits, a.step_time) < std::tie(changes_b, b.fits, b.step_time);
  });
  // What an earlier one beats in time and memory, with no more changes, is no advice.
  std::vector<FitAdvice> useful;
  for (const FitAdvice& each : advice) {
    const bool beaten = std::any_of(useful.begin(), useful.end(), [&](const FitAdvice& other) {
      return other.fits <= each.fits && other.step_time <= each.step_time &&
             other.peak <= each.peak;
    });
    if (!beaten) useful.push_back(each);
  }
  return useful;
}

}  // namespace zl
