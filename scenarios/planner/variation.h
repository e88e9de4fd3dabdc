// A strategy with some of its choices changed, in DeepSpeed form: what "make it fit" and the sweep
// try. Ownership: values. Threads: pure functions.
#pragma once

#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "scenarios/planner/study.h"

namespace zl {

struct Variation {
  std::string name;                  // of the changed strategy, unique among those of one strategy
  std::string json;                  // DeepSpeed form
  std::vector<std::string> changes;  // "ZeRO stage 1 → 2"
};

struct Change {
  std::string tag, text;  // for the name, for people
  std::function<void(nlohmann::ordered_json&)> apply;
};

// One axis of a search: leave it (an empty change) or change it one of several ways.
using Choices = std::vector<Change>;

Change stage_change(const Strategy& strategy, int stage);
Change recompute_change(const Strategy& strategy, const std::string& mode);
// The gradients of `accumulation` micro-batches of `micro_batch` sequences are one step.
Change batch_change(const Strategy& strategy, std::int64_t micro_batch, std::int64_t accumulation);
Change optimizer_to_host();
Change optimizer_and_weights_to_host();

// Every combination of one choice from each axis that this build accepts, without the strategy
// itself.
std::vector<Variation> variations(const Study& study, const StrategyStudy& strategy,
                                  const std::vector<Choices>& axes);

// The strategies of a study as its document may list them.
std::vector<std::string> listed_strategies(const Study& study);

// The study's document with the variation in place of the strategy.
Document with_variation(const Study& study, const StrategyStudy& strategy,
                        const Variation& variation);

}  // namespace zl
