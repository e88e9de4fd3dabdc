// A recording priced apart from its run: the same numbers as a simulated run, and a memory curve
// whose peak is the ledger's.
#include "scenarios/run/simulate.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "scenarios/files/clusters.h"
#include "scenarios/files/load_scenario.h"
#include "scenarios/report/show.h"
#include "scenarios/run/runner.h"
#include "simulator/memory_curve.h"

namespace zl {
namespace {

Scenario on_eight_gpus() {
  ScenarioOverrides overrides;
  overrides.cluster = "8xh100";
  return load_scenario("gpt2-124m", overrides);
}

TEST(Simulate, ARecordingPricedLaterIsTheSimulatedRun) {
  const Scenario scenario = on_eight_gpus();
  const sim::ClusterSpec cluster = scenario_cluster(scenario);
  const DeviceProperties device = sim::device_properties(cluster);
  for (const ImportedStrategy& strategy : scenario.strategies) {
    const RunResult run = Runner().run(scenario, strategy, "sim");
    const Recording recording =
        record_run(scenario, strategy.strategy, device, program_options(scenario));
    const RunResult priced = price_run(scenario, recording, cluster);
    EXPECT_EQ(priced.step_time.median, run.step_time.median);
    EXPECT_EQ(priced.tokens_per_second, run.tokens_per_second);
    EXPECT_EQ(priced.mfu, run.mfu);
    EXPECT_EQ(priced.peak_device.tag, run.peak_device.tag);
  }
}

TEST(Simulate, AFasterDeviceNeedsNoNewRecording) {
  const Scenario scenario = on_eight_gpus();
  sim::ClusterSpec cluster = scenario_cluster(scenario);
  const Recording recording =
      record_run(scenario, scenario.strategies[0].strategy, sim::device_properties(cluster),
                 program_options(scenario));
  const double before = price_run(scenario, recording, cluster).step_time.median;
  for (auto& rate : cluster.device.rates) rate.peak *= 4;
  EXPECT_LT(price_run(scenario, recording, cluster).step_time.median, before);
}

// Every class recorded: together all ranks, and the same result as the first rank's alone.
TEST(Simulate, TheRanksThatDifferByPaddingChangeNoResult) {
  ScenarioOverrides overrides;
  overrides.cluster = "16xh100";
  overrides.ranks = 13;
  const Scenario scenario = load_scenario("gpt2-tiny", overrides);
  const sim::ClusterSpec cluster = scenario_cluster(scenario);
  const DeviceProperties device = sim::device_properties(cluster);
  for (const ImportedStrategy& strategy : scenario.strategies) {
    const Recording one =
        record_run(scenario, strategy.strategy, device, program_options(scenario));
    EXPECT_EQ(one.ranks.multiplicity(), 13);
    EXPECT_TRUE(one.others.empty());
    const Recording all = record_run(scenario, strategy.strategy, device, program_options(scenario),
                                     RecordedRanks::classes);
    int ranks = all.ranks.multiplicity();
    for (const ClassRecording& other : all.others) ranks += other.ranks.multiplicity();
    EXPECT_EQ(ranks, 13);
    EXPECT_FALSE(all.others.empty());
    EXPECT_EQ(all.ranks.representative(), 0);
    EXPECT_EQ(all.books.peak_device.tag, one.books.peak_device.tag);
    EXPECT_EQ(all.books.op_sequence_hash, one.books.op_sequence_hash);
    EXPECT_EQ(price_run(scenario, all, cluster).step_time.median,
              price_run(scenario, one, cluster).step_time.median)
        << strategy.strategy.name;
  }
}

// Weights, gradients and state of a bf16 run of one rank, as `show model` counts them.
TEST(Simulate, ARunHoldsTheStatesThatTheModelShows) {
  ScenarioOverrides overrides;
  overrides.cluster = "h100";
  overrides.strategies = {"zero-0"};
  const Scenario scenario = load_scenario("gpt2-124m", overrides);
  const RunResult run = Runner().run(scenario, scenario.strategies[0], "sim");
  EXPECT_EQ(run.precision, "bf16");
  std::int64_t held = 0;
  for (const MemoryTag tag : {MemoryTag::parameter, MemoryTag::gradient, MemoryTag::optimizer}) {
    held += run.peak_device.tag[static_cast<std::size_t>(tag)];
  }
  const auto shown = show_model(scenario.model)["bytes"]["states_mixed_adam"].get<double>();
  EXPECT_NEAR(static_cast<double>(held) / shown, 1, 1e-3);
}

TEST(Simulate, TheMemoryCurvePeaksAtTheLedgersPeak) {
  const Scenario scenario = on_eight_gpus();
  const sim::ClusterSpec cluster = scenario_cluster(scenario);
  for (const ImportedStrategy& strategy : scenario.strategies) {
    const Recording recording = record_run(
        scenario, strategy.strategy, sim::device_properties(cluster), program_options(scenario));
    sim::Timeline timeline;
    const RunResult priced = price_run(scenario, recording, cluster, &timeline);
    const auto curve = sim::memory_over_time(recording.trace, timeline.events, MemorySpace::device);
    const auto peak = sim::peak_point(curve);
    ASSERT_GE(peak, 0);
    const auto& point = curve[static_cast<std::size_t>(peak)];
    EXPECT_EQ(point.bytes, priced.peak_device.tag) << strategy.strategy.name;
    std::int64_t live = 0;
    for (const auto& block : sim::live_after(recording.trace, point.event, MemorySpace::device)) {
      live += block.bytes;
      EXPECT_STRNE(block.what, "");
    }
    EXPECT_EQ(live, point.total());
  }
}

}  // namespace
}  // namespace zl
