// Scenarios from text.
// Ownership: values. Threads: pure functions.
#pragma once

#include <string>

#include "scenarios/files/load_scenario.h"

namespace zl {

inline Scenario load_text(const std::string& text, const ScenarioOverrides& overrides = {}) {
  return scenario_from_json(text, "test.json", overrides);
}

}  // namespace zl
