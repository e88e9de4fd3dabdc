// Scenarios by name, by file and by text.
// Ownership: values. Threads: pure functions.
#pragma once

#include <string>
#include <string_view>

#include "scenarios/files/overrides.h"
#include "scenarios/files/scenario.h"

namespace zl {

// `name_or_path`: a study of the catalogue, the name of a model (the five ZeRO strategies on
// "local"), a scenario file, or "" when overrides.model is set. What says no precision gets
// sim::default_precision of the cluster.
// Throws Error{invalid} naming the key, the value and the fix.
Scenario load_scenario(const std::string& name_or_path, const ScenarioOverrides& overrides = {});

Scenario scenario_from_json(std::string_view text, std::string_view source,
                            const ScenarioOverrides& overrides = {});

}  // namespace zl
