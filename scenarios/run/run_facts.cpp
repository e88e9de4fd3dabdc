#include "scenarios/run/run_facts.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "results/environment.h"
#include "scenarios/files/strategy_json.h"

namespace zl {
namespace {

// One fact per leaf: "run.seed", "strategies.0.optimizer.type".
void add_leaves(const Json& object, std::vector<Fact>& facts) {
  const Json leaves = object.flatten();
  for (const auto& [pointer, leaf] : leaves.items()) {
    std::string key = pointer.substr(1);
    std::replace(key.begin(), key.end(), '/', '.');
    facts.push_back({std::move(key), leaf.dump(-1, ' ', false, Json::error_handler_t::replace)});
  }
}

std::string given(const std::string& value) { return value.empty() ? "none" : value; }

}  // namespace

std::vector<Fact> run_facts(const Scenario& scenario, const Strategy& strategy,
                            const Fingerprints& read, const RunHooks& hooks) {
  std::vector<Fact> facts;
  facts.push_back({"zerolab", ZL_VERSION " (" + detect_environment().commit + ")"});
  add_leaves(Json::parse(canonical_json(scenario)), facts);
  facts.push_back({"data", read.data});
  facts.push_back({"evaluation data", given(read.evaluation)});
  facts.push_back({"weights", given(read.weights)});
  facts.push_back({"strategy", strategy.name});
  facts.push_back({"recomputation", decided_recompute_text(strategy.recompute)});
  facts.push_back({"--checkpoint", given(hooks.checkpoint.folder)});
  facts.push_back({"--checkpoint-every", std::to_string(hooks.checkpoint.every)});
  facts.push_back({"--resume", hooks.checkpoint.resume ? "true" : "false"});
  facts.push_back({"--save", given(hooks.save_weights_to)});
  return facts;
}

}  // namespace zl
