// Under software whose bytes are known, the prediction decides whether a strategy fits.
#include <gtest/gtest.h>

#include "scenarios/files/clusters.h"
#include "scenarios/files/load_scenario.h"
#include "scenarios/run/judge.h"
#include "scenarios/run/resolve_recompute.h"
#include "scenarios/run/runner.h"
#include "scenarios/run/software_bytes.h"

namespace zl {
namespace {

Scenario scenario_of(const std::string& software) {
  ScenarioOverrides overrides;
  overrides.cluster = "8xh100";
  overrides.strategies = {"zero-3"};
  overrides.software = software;
  overrides.precision = "bf16";
  return load_scenario("gpt2-124m", overrides);
}

Verdict within(const Scenario& scenario, std::int64_t memory) {
  DeviceProperties device = simulated_device(scenario, scenario_cluster(scenario));
  device.memory = memory;
  return judge(scenario, scenario.strategies.front().strategy, device, program_options(scenario));
}

HeldBySoftware held_of(const Scenario& scenario) {
  return held_by_software(scenario, scenario.strategies.front().strategy);
}

TEST(SoftwareJudge, ThePredictionWithItsBarDecides) {
  const Scenario scenario = scenario_of("torch-fsdp2");
  const HeldBySoftware held = held_of(scenario);
  ASSERT_TRUE(held.is_known());
  EXPECT_LT(held.low, held.device);
  EXPECT_LT(held.device, held.high);
  EXPECT_EQ(held.within(held.high), Fits::yes);
  EXPECT_EQ(held.within(held.device), Fits::maybe);
  EXPECT_EQ(held.within(held.low - 1), Fits::no);
  EXPECT_TRUE(within(scenario, held.high).fits());
  EXPECT_TRUE(within(scenario, held.low).fits());
  const Verdict refused = within(scenario, held.low - 1);
  EXPECT_FALSE(refused.fits());
  EXPECT_NE(refused.refusal.find("torch-fsdp2 would hold "), std::string::npos) << refused.refusal;
  EXPECT_EQ(refused.need.reserved, held.device);
}

TEST(SoftwareJudge, UnderThisCoreTheRecordingDecides) {
  const Scenario scenario = scenario_of("zerolab");
  EXPECT_FALSE(held_of(scenario).is_known());
  const std::int64_t need = memory_need(*within(scenario, 0).recording).reserved;
  EXPECT_TRUE(within(scenario, need).fits());
  EXPECT_FALSE(within(scenario, need / 2).fits());
}

TEST(SoftwareJudge, RunsSayWhetherTheyFit) {
  Scenario scenario = scenario_of("torch-fsdp2");
  const HeldBySoftware held = held_of(scenario);
  const auto run = [&](std::int64_t memory) {
    scenario.run.device_memory = memory;
    return Runner().run(scenario, scenario.strategies.front(), "sim");
  };
  const RunResult maybe = run(held.device);
  EXPECT_EQ(maybe.outcome, Outcome::ok);
  EXPECT_EQ(fits(maybe), Fits::maybe);
  EXPECT_EQ(maybe.software_held, held);
  EXPECT_EQ(bytes_that_must_fit(maybe), held.device);
  const RunResult no = run(held.low / 2);
  EXPECT_EQ(no.outcome, Outcome::out_of_memory);
  EXPECT_EQ(fits(no), Fits::no);
  EXPECT_EQ(fits(run(held.high)), Fits::yes);
}

TEST(SoftwareJudge, AutomaticRecomputationGoesByThePrediction) {
  Scenario scenario = scenario_of("torch-fsdp2");
  Strategy strategy = scenario.strategies.front().strategy;
  strategy.micro_batch = 32;
  strategy.recompute.mode = RecomputeMode::full;
  const std::int64_t all = held_by_software(scenario, strategy).high;
  strategy.recompute = {};
  const std::int64_t none = held_by_software(scenario, strategy).high;
  ASSERT_LT(all, none);
  strategy.recompute.mode = RecomputeMode::automatic;
  DeviceProperties device = simulated_device(scenario, scenario_cluster(scenario));
  const auto blocks_within = [&](std::int64_t memory) {
    device.memory = memory;
    return resolve_recompute(scenario, strategy, device).recompute.blocks;
  };
  EXPECT_EQ(blocks_within(none), 0);
  EXPECT_EQ(blocks_within(all), scenario.model.layers);
  const std::int64_t some = blocks_within((all + none) / 2);
  EXPECT_GT(some, 0);
  EXPECT_LT(some, scenario.model.layers);
}

}  // namespace
}  // namespace zl
