// What the command line says of a scenario.
// Ownership: a value. Threads: pure function.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "scenarios/files/run_settings.h"
#include "scenarios/files/strategy_edits.h"

namespace zl {

// Unset members leave the scenario as it is. Paths are relative to the working directory.
struct ScenarioOverrides : RunOverrides {
  std::optional<std::string> model, cluster;
  std::vector<std::string> strategies;
  StrategyEdits edits;  // of every strategy
};

// The document of a scenario with the overrides in place of what it says.
void apply_overrides(const ScenarioOverrides& overrides, Json& document);

}  // namespace zl
