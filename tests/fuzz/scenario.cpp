// Scenario files: what one is written as means the same, and small ones can be simulated.
#include <algorithm>

#include "core/base/log.h"
#include "scenarios/files/load_scenario.h"
#include "scenarios/run/runner.h"
#include "scenarios/run/stored_run.h"
#include "tests/fuzz/fuzz.h"

namespace {

bool is_small(const zl::Scenario& scenario) {
  const zl::ModelConfig& model = scenario.model;
  return model.layers <= 8 && model.hidden < 1 << 20 && model.vocab < 1 << 22 &&
         scenario.run.ranks <= 1024 && scenario.run.steps <= 1000 &&
         scenario.run.sequence_length < 1 << 16;
}

void simulate(const zl::Scenario& scenario) {
  static const zl::Runner runner;
  const zl::ImportedStrategy& strategy = scenario.strategies.front();
  if (!is_small(scenario) || strategy.strategy.gradient_accumulation > 8) return;
  zl::fuzz::takes([&] {
    const zl::RunResult result = zl::attempt_run(runner, scenario, strategy, "sim", {});
    const bool failed = result.outcome == zl::Outcome::failed;
    zl::fuzz::require(!failed || !zl::fuzz::is_internal(result.message), result.message);
  });
}

}  // namespace

ZL_FUZZ_TARGET(scenario) {
  zl::set_log_level(zl::LogLevel::quiet);
  const std::string_view text = zl::fuzz::text_of(data, size);
  zl::Scenario scenario;
  const auto read = [&] { scenario = zl::scenario_from_json(text, "/nowhere/input.json"); };
  if (!zl::fuzz::takes(read)) return 0;
  const std::string written = zl::canonical_json(scenario, 1);
  const bool taken = zl::fuzz::takes([&] {
    const zl::Scenario again = zl::scenario_from_json(written, "again.json");
    zl::fuzz::require(zl::content_hash(again) == zl::content_hash(scenario),
                      "another scenario:\n" + written + "\n" + zl::canonical_json(again, 1));
  });
  zl::fuzz::require(taken, "what was written is refused:\n" + written);
  simulate(scenario);
  return 0;
}
