// From the document of a scenario to its numbers: names are looked up, defaults filled in,
// strategies imported.
// Ownership: values. Threads: pure function.
#pragma once

#include <filesystem>
#include <string>

#include "scenarios/files/overrides.h"
#include "scenarios/files/scenario.h"

namespace zl {

// `name`: of a document that has none. `folder`: what its paths are relative to. Throws
// Error{invalid} naming the key, the value and the fix.
Scenario resolve_scenario(Json document, const std::string& name,
                          const std::filesystem::path& folder, const ScenarioOverrides& overrides);

}  // namespace zl
