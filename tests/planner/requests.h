// What the planner's tests ask for.
#pragma once

#include <cstdint>
#include <string>

#include "scenarios/planner/plan_request.h"

namespace zl::test {

// A model whose layers are heavy enough to be a GPU's work.
inline PlanRequest small_request(std::int64_t ranks, std::int64_t layers,
                                 std::int64_t global_batch) {
  ScenarioOverrides overrides;
  overrides.cluster = std::to_string(ranks) + "xh100";
  overrides.sequence_length = 1024;
  overrides.steps = 3;
  overrides.software = "zerolab";  // the device is what takes the time
  PlanRequest request;
  request.scenario = plan_scenario("gpt2-774m", overrides);
  request.scenario.model.layers = layers;
  request.global_batch = global_batch;
  request.top = 3;
  return request;
}

}  // namespace zl::test
