#include "scenarios/planner/variation.h"

#include <nlohmann/json.hpp>

#include "core/base/error.h"
#include "scenarios/files/strategy_json.h"

namespace zl {
namespace {

using Json = nlohmann::ordered_json;

Variation combined(const StrategyStudy& strategy, const std::vector<const Change*>& changes) {
  Json json = strategy_to_json(strategy.imported.strategy);
  Variation variation;
  variation.name = strategy.name();
  for (const Change* change : changes) {
    if (!change->apply) continue;
    change->apply(json);
    variation.changes.push_back(change->text);
    variation.name += "+" + change->tag;
  }
  json["x-zerolab"]["name"] = variation.name;
  variation.json = json.dump();
  return variation;
}

// Where offloading has no effect, the change would name what is not there.
bool offloads_as_asked(const Strategy& strategy, const Json& asked) {
  const Json zero = asked.value("zero_optimization", Json::object());
  const auto is_asked = [&zero](const char* section) {
    return zero.contains(section) && zero[section].value("device", "none") != "none";
  };
  return (strategy.offload.optimizer != Tier::device) == is_asked("offload_optimizer") &&
         (strategy.offload.parameters != Tier::device) == is_asked("offload_param");
}

bool is_accepted(const Study& study, const Variation& variation) {
  try {
    ImportContext context;
    context.ranks = study.scenario.run.ranks;
    context.model = &study.scenario.model;
    context.steps = study.scenario.run.steps;
    const ImportedStrategy imported = import_deepspeed(variation.json, variation.name, context);
    require_runnable(imported);
    return offloads_as_asked(imported.strategy, Json::parse(variation.json));
  } catch (const Error&) {
    return false;
  }
}

std::string arrow(const std::string& what, const std::string& from, const std::string& to) {
  return what + " " + from + " → " + to;
}

}  // namespace

Change stage_change(const Strategy& strategy, int stage) {
  const std::string to = std::to_string(stage);
  return {"zero-" + to, arrow("ZeRO stage", std::to_string(strategy.zero.stage), to),
          [stage](Json& json) {
            json["zero_optimization"]["stage"] = stage;
            json["zero_optimization"]["overlap_comm"] = true;
          }};
}

Change recompute_change(const Strategy& strategy, const std::string& mode) {
  return {"recompute-" + mode, arrow("recomputation", recompute_text(strategy.recompute), mode),
          [mode](Json& json) { json["x-zerolab"]["recompute"] = mode; }};
}

Change batch_change(const Strategy& strategy, std::int64_t micro_batch, std::int64_t accumulation) {
  const std::string to = std::to_string(micro_batch);
  return {"micro-batch-" + to, arrow("micro-batch", std::to_string(strategy.micro_batch), to),
          [micro_batch, accumulation](Json& json) {
            json["train_micro_batch_size_per_gpu"] = micro_batch;
            json["gradient_accumulation_steps"] = accumulation;
          }};
}

Change optimizer_to_host() {
  return {"offload-optimizer", "optimizer state → host", [](Json& json) {
            json["zero_optimization"]["offload_optimizer"] = {{"device", "cpu"}};
          }};
}

Change optimizer_and_weights_to_host() {
  return {"offload-all", "optimizer state and weights → host", [](Json& json) {
            json["zero_optimization"]["offload_optimizer"] = {{"device", "cpu"}};
            json["zero_optimization"]["offload_param"] = {{"device", "cpu"}};
          }};
}

std::vector<Variation> variations(const Study& study, const StrategyStudy& strategy,
                                  const std::vector<Choices>& axes) {
  std::vector<std::vector<const Change*>> combinations{{}};
  for (const Choices& axis : axes) {
    std::vector<std::vector<const Change*>> longer;
    for (const auto& before : combinations) {
      for (const Change& change : axis) {
        longer.push_back(before);
        longer.back().push_back(&change);
      }
    }
    combinations = std::move(longer);
  }
  std::vector<Variation> accepted;
  for (const auto& changes : combinations) {
    Variation variation = combined(strategy, changes);
    if (variation.changes.empty() || !is_accepted(study, variation)) continue;
    accepted.push_back(std::move(variation));
  }
  return accepted;
}

std::vector<std::string> listed_strategies(const Study& study) {
  std::vector<std::string> strategies = study.document.strategies();
  if (!strategies.empty()) return strategies;
  for (const StrategyStudy& each : study.strategies) strategies.push_back(each.name());
  return strategies;
}

Document with_variation(const Study& study, const StrategyStudy& strategy,
                        const Variation& variation) {
  std::vector<std::string> strategies = listed_strategies(study);
  const auto index = static_cast<std::size_t>(&strategy - study.strategies.data());
  strategies.at(index) = variation.json;
  return study.document.with_strategies(strategies);
}

}  // namespace zl
