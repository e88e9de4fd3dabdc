#include "gui/fit.h"

#include <algorithm>
#include <functional>
#include <nlohmann/json.hpp>

#include "core/base/error.h"
#include "scenarios/strategy_file.h"

namespace zl::gui {
namespace {

using Json = nlohmann::ordered_json;

struct Change {
  std::string tag, text;  // for the name, for people
  std::function<void(Json&)> apply;
};

// One axis of the search: leave it (first, empty) or change it one way.
using Choices = std::vector<Change>;

Choices stage_choices(const Strategy& strategy) {
  Choices choices{{}};
  for (int stage = strategy.zero_stage + 1; stage <= 3; ++stage) {
    choices.push_back(
        {"zero-" + std::to_string(stage),
         "ZeRO stage " + std::to_string(strategy.zero_stage) + " → " + std::to_string(stage),
         [stage](Json& json) {
           json["zero_optimization"]["stage"] = stage;
           json["zero_optimization"]["overlap_comm"] = true;
         }});
  }
  return choices;
}

Choices recompute_choices(const Strategy& strategy) {
  Choices choices{{}};
  if (strategy.recompute.mode == RecomputeMode::full) return choices;
  for (const char* mode : {"auto", "full"}) {
    if (strategy.recompute.mode == RecomputeMode::automatic && std::string(mode) == "auto")
      continue;
    choices.push_back(
        {std::string("recompute-") + mode,
         std::string("recomputation ") + recompute_text(strategy.recompute) + " → " + mode,
         [mode](Json& json) { json["x-zerolab"]["recompute"] = mode; }});
  }
  return choices;
}

Choices batch_choices(const Strategy& strategy) {
  Choices choices{{}};
  const std::int64_t batch = strategy.micro_batch;
  if (batch == 1) return choices;
  const std::int64_t accumulation = strategy.gradient_accumulation * batch;
  choices.push_back({"micro-batch-1", "micro-batch " + std::to_string(batch) + " → 1",
                     [accumulation](Json& json) {
                       json["train_micro_batch_size_per_gpu"] = 1;
                       json["gradient_accumulation_steps"] = accumulation;
                     }});
  return choices;
}

Choices offload_choices(const Strategy& strategy) {
  Choices choices{{}};
  if (strategy.offload.any()) return choices;
  choices.push_back({"offload-optimizer", "optimizer state → host", [](Json& json) {
                       json["zero_optimization"]["offload_optimizer"] = {{"device", "cpu"}};
                     }});
  choices.push_back({"offload-all", "optimizer state and weights → host", [](Json& json) {
                       json["zero_optimization"]["offload_optimizer"] = {{"device", "cpu"}};
                       json["zero_optimization"]["offload_param"] = {{"device", "cpu"}};
                     }});
  return choices;
}

FitCandidate combined(const StrategyStudy& strategy, const std::vector<const Change*>& changes) {
  Json json = strategy_to_json(strategy.imported.strategy);
  FitCandidate candidate;
  candidate.name = strategy.name();
  for (const Change* change : changes) {
    if (!change->apply) continue;
    change->apply(json);
    candidate.changes.push_back(change->text);
    candidate.name += "+" + change->tag;
  }
  json["x-zerolab"]["name"] = candidate.name;
  candidate.json = json.dump();
  return candidate;
}

bool is_accepted(const Study& study, const FitCandidate& candidate) {
  try {
    ImportContext context;
    context.ranks = study.scenario.run.ranks;
    context.model = &study.scenario.model;
    context.steps = study.scenario.run.steps;
    require_runnable(import_deepspeed(candidate.json, candidate.name, context));
    return true;
  } catch (const Error&) {
    return false;
  }
}

}  // namespace

std::vector<FitCandidate> fit_candidates(const Study& study, const StrategyStudy& strategy) {
  const Strategy& base = strategy.imported.strategy;
  std::vector<FitCandidate> candidates;
  for (const Change& stage : stage_choices(base)) {
    for (const Change& recompute : recompute_choices(base)) {
      for (const Change& batch : batch_choices(base)) {
        for (const Change& offload : offload_choices(base)) {
          FitCandidate candidate = combined(strategy, {&stage, &recompute, &batch, &offload});
          if (candidate.changes.empty() || !is_accepted(study, candidate)) continue;
          candidates.push_back(std::move(candidate));
        }
      }
    }
  }
  return candidates;
}

Document fit_document(const Study& study, const std::vector<FitCandidate>& candidates) {
  std::vector<std::string> strategies;
  for (const FitCandidate& candidate : candidates) strategies.push_back(candidate.json);
  return study.document.with_strategies(strategies);
}

Document with_candidate(const Study& study, const StrategyStudy& strategy,
                        const FitCandidate& candidate) {
  std::vector<std::string> strategies = study.document.strategies();
  if (strategies.empty()) {
    for (const StrategyStudy& each : study.strategies) strategies.push_back(each.name());
  }
  const auto index = static_cast<std::size_t>(&strategy - study.strategies.data());
  strategies.at(index) = candidate.json;
  return study.document.with_strategies(strategies);
}

std::vector<FitAdvice> fit_advice(const Study& evaluated, const StrategyStudy& strategy,
                                  const std::vector<FitCandidate>& candidates) {
  std::vector<FitAdvice> advice;
  for (const FitCandidate& candidate : candidates) {
    const StrategyStudy* found = evaluated.find(candidate.name);
    if (found == nullptr || !found->fits()) continue;
    const double seconds = found->result.step_time.median;
    const double before = strategy.result.step_time.median;
    advice.push_back({&candidate, seconds, before > 0 ? seconds / before - 1 : 0,
                      found->result.peak_device.total()});
  }
  std::stable_sort(advice.begin(), advice.end(), [](const FitAdvice& a, const FitAdvice& b) {
    const auto changes_a = a.candidate->changes.size(), changes_b = b.candidate->changes.size();
    return changes_a != changes_b ? changes_a < changes_b : a.step_time < b.step_time;
  });
  // What an earlier one beats in time and memory, with no more changes, is no advice.
  std::vector<FitAdvice> useful;
  for (const FitAdvice& each : advice) {
    const bool beaten = std::any_of(useful.begin(), useful.end(), [&](const FitAdvice& other) {
      return other.step_time <= each.step_time && other.peak <= each.peak;
    });
    if (!beaten) useful.push_back(each);
  }
  return useful;
}

}  // namespace zl::gui
