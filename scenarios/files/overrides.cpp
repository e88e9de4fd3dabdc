#include "scenarios/files/overrides.h"

#include <nlohmann/json.hpp>

namespace zl {

void apply_overrides(const ScenarioOverrides& overrides, Json& document) {
  if (overrides.model) document["model"] = *overrides.model;
  if (overrides.cluster) document["cluster"] = *overrides.cluster;
  if (!overrides.strategies.empty()) document["strategies"] = overrides.strategies;
  Json& run = document["run"];
  if (run.is_null()) run = Json::object();
  if (!run.is_object()) return;  // the reader says so
  apply_overrides(static_cast<const RunOverrides&>(overrides), run);
}

}  // namespace zl
