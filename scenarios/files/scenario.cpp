#include "scenarios/files/scenario.h"

#include <algorithm>

#include <nlohmann/json.hpp>

#include "core/base/error.h"
#include "core/base/fnv.h"
#include "scenarios/files/model_file.h"
#include "scenarios/files/strategy_json.h"

namespace zl {

void check_real_ranks(const Scenario& scenario, std::string_view backend) {
  if (scenario.run.ranks >= 1 && scenario.run.ranks <= kMaxRealRanks) return;
  throw Error(ErrorCode::invalid, "run.ranks: " + std::to_string(scenario.run.ranks) +
                                      " is not in 1..64, the ranks that backend " +
                                      std::string(backend) + " runs; use fewer, or --backend sim");
}

Json scenario_to_json(const Scenario& scenario) {
  Json out = {{"schema", 1}};
  out["model"] = model_to_json(scenario.model);
  out["cluster"] =
      scenario.cluster_json.empty() ? Json(scenario.cluster) : Json::parse(scenario.cluster_json);
  out["strategies"] = Json::array();
  for (const ImportedStrategy& imported : scenario.strategies) {
    out["strategies"].push_back(strategy_to_json(imported.strategy));
  }
  out["run"] = run_settings_to_json(scenario.run);
  return out;
}

std::string canonical_json(const Scenario& scenario, int indent) {
  Json out = scenario_to_json(scenario);
  out["name"] = scenario.name;
  return to_text(out, indent);
}

Scenario with_one_strategy(const Scenario& scenario, const ImportedStrategy& strategy) {
  return {scenario.name,         scenario.model, scenario.cluster,
          scenario.cluster_json, {strategy},     scenario.run};
}

std::string content_hash(const Scenario& scenario) {
  Fnv1a hash;
  hash.add(to_text(scenario_to_json(scenario)));
  std::uint64_t left = hash.value();
  std::string digits(16, '0');
  for (std::size_t i = 16; i-- > 0; left >>= 4) digits[i] = "0123456789abcdef"[left & 15];
  return digits;
}

std::int64_t tokens_per_step(const Scenario& scenario, const Strategy& strategy) {
  const RunSettings& run = scenario.run;
  const std::int64_t ranks = std::max<std::int64_t>(1, run.ranks);  // 0: to be chosen
  return ranks / (strategy.pipeline.ranks * strategy.tensor.ranks) * strategy.micro_batch *
         strategy.gradient_accumulation * run.sequence_length;
}

}  // namespace zl
