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
  // Says what the changed strategy is, not how it came about: "zero-2 + recompute". Of a strategy
  // that is none of the plain ones, its name and the changes. Unique among those of one strategy.
  std::string name;
  std::string json;                  // DeepSpeed form
  std::vector<std::string> changes;  // "ZeRO stage 1 → 2"
};

struct Change {
  std::string tag, text;  // for names, for people
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

// Other sizes of tensor group and pipeline, powers of two, a tensor group within a node; as many
// micro-batches more as there are ranks less over data, so that the global batch stays.
Choices mesh_changes(const Study& study, const Strategy& strategy);

// Those of its meshes that have a pipeline, the strategy's own too, each under every other schedule
// worth trying; interleaved and V-shaped ones with two parts of the model on a rank.
Choices schedule_changes(const Study& study, const Strategy& strategy);

// Every combination of one choice from each axis that this build accepts, without the strategy
// itself.
std::vector<Variation> variations(const Study& study, const StrategyStudy& strategy,
                                  const std::vector<Choices>& axes);

// The strategy of the study that does the same under whatever name; null: none.
const StrategyStudy* same_strategy(const Study& study, const Variation& variation);

// The variation under a name that no strategy of the study has, but the one at `replaced`.
Variation with_free_name(const Study& study, Variation variation,
                         const StrategyStudy* replaced = nullptr);

// The strategies of a study as its document may list them.
std::vector<std::string> listed_strategies(const Study& study);

// The study's document with the variation in place of the strategy.
Document with_variation(const Study& study, const StrategyStudy& strategy,
                        const Variation& variation);

}  // namespace zl
