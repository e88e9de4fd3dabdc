// The deepest model that fits: the same on the recording device and for real, and ten times deeper
// with offload.
#include <gtest/gtest.h>

#include "scenarios/files/load_scenario.h"
#include "scenarios/run/largest.h"

namespace zl {
namespace {

// Small enough to train: width 64 in 8 MiB a rank.
Scenario small_budget() {
  return scenario_from_json(R"({
      "model": {"family": "gpt2", "name": "narrow", "layers": 1, "hidden": 64, "heads": 2,
                "vocab": 64, "max_sequence": 32},
      "strategies": ["zero-0", "zero-2-offload-cpu", "zero-3-offload-cpu"],
      "run": {"ranks": 2, "steps": 2, "data": "synthetic", "precision": "bf16", "micro_batch": 1,
              "device_memory": "4MiB", "host_memory": "24MiB"}})",
                            "largest.json");
}

TEST(Largest, IsTheLargestForRealToo) {
  const Runner runner;
  const Scenario scenario = small_budget();
  for (const ImportedStrategy& strategy : scenario.strategies) {
    const LargestFit fit = largest_fit(runner, scenario, strategy);
    const std::string& name = strategy.strategy.name;
    ASSERT_TRUE(fit.limited) << name;
    ASSERT_GE(fit.layers, 1) << name;
    const RunResult real = runner.run(with_layers(scenario, fit.layers), strategy, "cpu");
    EXPECT_EQ(real.outcome, Outcome::ok) << name << ": " << real.message;
    EXPECT_EQ(real.peak_device.tag, fit.books.peak_device.tag) << name;
    EXPECT_EQ(real.peak_host.tag, fit.books.peak_host.tag) << name;
    const RunResult deeper = runner.run(with_layers(scenario, fit.layers + 1), strategy, "cpu");
    EXPECT_EQ(deeper.outcome, Outcome::out_of_memory) << name;
  }
}

TEST(Largest, OffloadTrainsTenTimesTheParametersOfDataParallelism) {
  const Runner runner;
  const Scenario scenario = load_scenario("ten-times");
  std::vector<LargestFit> fits;
  for (const ImportedStrategy& strategy : scenario.strategies) {
    fits.push_back(largest_fit(runner, scenario, strategy));
    EXPECT_LE(fits.back().books.reserved_device, scenario.run.device_memory);
    EXPECT_LE(fits.back().books.peak_host.total(), scenario.run.host_memory);
  }
  ASSERT_EQ(fits.size(), 4u);
  EXPECT_GT(fits[1].parameters, 4 * fits[0].parameters) << "gradients and state on the host";
  EXPECT_GE(fits[2].parameters, 10 * fits[0].parameters) << "everything on the host";
  EXPECT_GT(fits[3].parameters, fits[2].parameters) << "everything in files";
}

TEST(Largest, SaysWhenNotEvenOneLayerFits) {
  Scenario scenario = small_budget();
  scenario.run.device_memory = 4096;
  const LargestFit fit = largest_fit(Runner(), scenario, scenario.strategies.front());
  EXPECT_EQ(fit.layers, 0);
  EXPECT_EQ(fit.parameters, 0);
}

// ZeRO-Offload's claim: 13 billion parameters on one V100, where plain training stops at 1.4.
TEST(Largest, ThirteenBillionParametersFitOneV100WithOffloadOnly) {
  const Runner runner;
  const Scenario scenario = load_scenario("13b-on-one-v100-32gb");
  EXPECT_NEAR(static_cast<double>(scenario.model.parameters()), 13e9, 0.4e9);
  for (const ImportedStrategy& strategy : scenario.strategies) {
    const RunResult result = runner.run(scenario, strategy, "sim");
    const bool plain = strategy.strategy.name == "zero-0";
    EXPECT_EQ(result.outcome, plain ? Outcome::out_of_memory : Outcome::ok) << result.message;
    EXPECT_EQ(result.tokens_per_second > 0, !plain);
  }
}

}  // namespace
}  // namespace zl
