#include "scenarios/planner/variation.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "core/base/error.h"
#include "scenarios/files/catalog.h"
#include "scenarios/files/strategy_json.h"

namespace zl {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kPlus = " + ";

// "zero-0" to "zero-3", alone or with what was added: nothing else is to be known of it.
bool is_plain(const std::string& name) {
  const std::string stem = name.substr(0, name.find(kPlus));
  if (stem.size() == 6 && stem.starts_with("zero-")) return stem[5] >= '0' && stem[5] <= '3';
  return stem.starts_with("zero-") && !stem.starts_with("zero-one") &&
         catalog_has("strategies", stem);
}

// " + tp2 pp4 zb-h1", by the DeepSpeed form; empty: no mesh.
std::string mesh_name(const Json& json) {
  const Json parallel = json["x-zerolab"].value("parallel", Json::object());
  std::string name;
  for (const auto& [key, tag] : {std::pair{"tensor", "tp"}, std::pair{"pipeline", "pp"}}) {
    const std::int64_t ranks = parallel.value(key, std::int64_t{1});
    if (ranks > 1) name += (name.empty() ? kPlus : " ") + std::string(tag) + std::to_string(ranks);
  }
  const std::string schedule = parallel.value("schedule", "1f1b");
  if (schedule != "1f1b") name += " " + schedule;
  return name;
}

// What a plain strategy is called, by its DeepSpeed form.
std::string plain_name(const Json& json, bool says_batch) {
  const Json& zero = json["zero_optimization"];
  std::string name = "zero-" + std::to_string(zero["stage"].get<int>());
  const std::string mode = json["x-zerolab"].value("recompute", "none");
  if (mode != "none") name += mode == "full" ? " + recompute" : " + recompute " + mode;
  const auto device = [&zero](const char* what) {
    return zero.contains(what) ? zero[what].value("device", "none") : std::string("none");
  };
  const std::string weights = device("offload_param"), state = device("offload_optimizer");
  if (weights != "none") {
    name += weights == "nvme" ? " + offload all to files" : " + offload all";
  } else if (state != "none") {
    name += state == "nvme" ? " + offload optimizer to files" : " + offload optimizer";
  }
  name += mesh_name(json);
  if (says_batch) {
    const auto batch = json["train_micro_batch_size_per_gpu"].get<std::int64_t>();
    name += " + micro-batch " + std::to_string(batch);
  }
  return name;
}

Variation combined(const StrategyStudy& strategy, const std::vector<const Change*>& changes) {
  Json json = strategy_to_json(strategy.imported.strategy);
  Variation variation;
  variation.name = strategy.name();
  bool says_batch = variation.name.find("micro-batch") != std::string::npos;
  for (const Change* change : changes) {
    if (!change->apply) continue;
    change->apply(json);
    variation.changes.push_back(change->text);
    variation.name += kPlus + change->tag;
    says_batch = says_batch || change->tag.starts_with("micro-batch");
  }
  if (is_plain(strategy.name())) variation.name = plain_name(json, says_batch);
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

ImportedStrategy imported(const Study& study, const Variation& variation) {
  ImportContext context;
  context.ranks = study.scenario.run.ranks;
  context.model = &study.scenario.model;
  context.steps = study.scenario.run.steps;
  return import_deepspeed(variation.json, variation.name, context);
}

bool is_accepted(const Study& study, const Variation& variation) {
  try {
    const ImportedStrategy changed = imported(study, variation);
    require_runnable(changed);
    return offloads_as_asked(changed.strategy, Json::parse(variation.json));
  } catch (const Error&) {
    return false;
  }
}

// As the catalogue's strategies have it.
Json pinned_host() { return {{"device", "cpu"}, {"pin_memory", true}}; }

std::string arrow(const std::string& what, const std::string& from, const std::string& to) {
  return what + " " + from + " → " + to;
}

}  // namespace

// A plain strategy becomes the catalogue's of that stage, so that two of one name are the same; of
// another its own keys stay.
Change stage_change(const Strategy& strategy, int stage) {
  const std::string to = std::to_string(stage);
  const bool plain = is_plain(strategy.name);
  return {"zero-" + to, arrow("ZeRO stage", std::to_string(strategy.zero.stage), to),
          [stage, plain, to](Json& json) {
            Json& zero = json["zero_optimization"];
            zero["stage"] = stage;
            zero["overlap_comm"] = true;
            if (!plain) return;
            const Json whole = Json::parse(catalog_text("strategies", "zero-" + to), nullptr, true,
                                           /*ignore_comments=*/true);
            Json fresh = whole["zero_optimization"];
            for (const auto& [key, value] : zero.items()) {
              if (key.starts_with("offload_") || key == "sub_group_size") fresh[key] = value;
            }
            zero = fresh;
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
  return {"offload-optimizer", "optimizer state → host",
          [](Json& json) { json["zero_optimization"]["offload_optimizer"] = pinned_host(); }};
}

Change optimizer_and_weights_to_host() {
  return {"offload-all", "optimizer state and weights → host", [](Json& json) {
            json["zero_optimization"]["offload_optimizer"] = pinned_host();
            json["zero_optimization"]["offload_param"] = pinned_host();
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

const StrategyStudy* same_strategy(const Study& study, const Variation& variation) {
  Strategy wanted = imported(study, variation).strategy;
  for (const StrategyStudy& each : study.strategies) {
    wanted.name = each.name();
    if (wanted == each.imported.strategy) return &each;
  }
  return nullptr;
}

Variation with_free_name(const Study& study, Variation variation, const StrategyStudy* replaced) {
  const std::string wanted = variation.name;
  const auto is_taken = [&](const std::string& name) {
    const StrategyStudy* found = study.find(name);
    return found != nullptr && found != replaced;
  };
  for (int count = 2; is_taken(variation.name); ++count) {
    variation.name = wanted + " (" + std::to_string(count) + ")";
  }
  Json json = Json::parse(variation.json);
  json["x-zerolab"]["name"] = variation.name;
  variation.json = json.dump();
  return variation;
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
  strategies.at(index) = with_free_name(study, variation, &strategy).json;
  return study.document.with_strategies(strategies);
}

}  // namespace zl
