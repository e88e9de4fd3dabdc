// What a recording of fp16 follows: the newest executed run of its scenario, here or stored.
#include "scenarios/run/skipped_steps.h"

#include <gtest/gtest.h>

#include "scenarios/files/load_scenario.h"
#include "scenarios/run/stored_run.h"

namespace zl {
namespace {

using Steps = std::vector<std::int64_t>;

// The scale begins at 2^24: gradients overflow until it has come down.
Scenario overflowing(const std::string& type = "fp16") {
  return scenario_from_json(R"({"schema": 1, "model": "gpt2-tiny", "cluster": "local",
      "strategies": [{"gradient_accumulation_steps": 1, ")" +
                                type + R"(": {"enabled": true)" +
                                (type == "fp16" ? R"(, "initial_scale_power": 24)" : "") + R"(},
                      "zero_optimization": {"stage": 1}, "x-zerolab": {"name": "scaled"}}],
      "run": {"ranks": 2, "steps": 12, "seed": 7, "sequence_length": 16, "data": "synthetic"}})",
                            "overflowing");
}

RunResult run(const Scenario& scenario, const std::string& backend, Steps overflows = {}) {
  RunHooks hooks;
  hooks.overflows = std::move(overflows);
  return attempt_run(Runner(), scenario, scenario.strategies.front(), backend, hooks);
}

TEST(SkippedSteps, AreThoseOfTheRunThatWasAddedOrStored) {
  const Scenario scenario = overflowing();
  const ImportedStrategy& strategy = scenario.strategies.front();
  const RunResult real = run(scenario, "cpu");
  ASSERT_EQ(real.outcome, Outcome::ok) << real.message;
  ASSERT_GT(real.skipped_steps, 0);
  ASSERT_LT(real.skipped_steps, real.steps);
  Store store = Store::in_memory();
  store_run(store, scenario, strategy, real, detect_environment());

  SkippedSteps known, unknown;
  known.add(scenario, strategy, real);
  const Steps added = known.of(scenario, strategy, nullptr);
  EXPECT_EQ(added, overflowed_steps(real));
  EXPECT_EQ(unknown.of(scenario, strategy, nullptr), Steps{});
  EXPECT_EQ(unknown.of(scenario, strategy, &store), added);
  const RunResult recorded = run(scenario, "sim", added);
  EXPECT_EQ(recorded.wire_bytes_per_step, real.wire_bytes_per_step);
  EXPECT_EQ(recorded.op_count, real.op_count);
  EXPECT_EQ(recorded.op_sequence_hash, real.op_sequence_hash);
  known.add(scenario, strategy, recorded);
  EXPECT_EQ(known.of(scenario, strategy, nullptr), added) << "a prediction is passed over";

  Scenario longer = scenario;
  longer.run.steps += 1;
  EXPECT_EQ(known.of(longer, longer.strategies.front(), &store), Steps{}) << "another scenario";
}

TEST(SkippedSteps, AreOfFp16Alone) {
  const Scenario scenario = overflowing("bf16");
  const ImportedStrategy& strategy = scenario.strategies.front();
  RunResult real = run(scenario, "cpu");
  real.skipped_steps = 1;
  real.grad_norm.front() = -1.0;
  SkippedSteps known;
  known.add(scenario, strategy, real);
  EXPECT_EQ(known.of(scenario, strategy, nullptr), Steps{});
}

}  // namespace
}  // namespace zl
