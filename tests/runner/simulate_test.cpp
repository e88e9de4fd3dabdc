// A recording priced apart from its run: the same numbers as a simulated run, and a memory curve
// whose peak is the ledger's.
#include "scenarios/run/simulate.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "results/run_tables.h"
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
  overrides.software = "zerolab";  // whose time is in the kernels
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

TEST(Simulate, PricesOfACalibrationSayWhatItWasNotMadeFor) {
  sim::RankCoefficients two{.ranks = 2};
  two.ops[0][static_cast<std::size_t>(DType::f32)].samples = 9;
  sim::ClusterSpec cluster;
  cluster.calibration = sim::Calibration{.by_ranks = {two}};
  cluster.devices = 2;
  EXPECT_STREQ(price_basis(cluster, DType::f32), "calibration");
  EXPECT_STREQ(price_basis(cluster, DType::bf16), "other precision");
  cluster.calibration->quiet = true;
  EXPECT_STREQ(price_basis(cluster, DType::f32), "quiet calibration");
  cluster.devices = 4;
  EXPECT_STREQ(price_basis(cluster, DType::f32), "other ranks");
  RunResult run;
  run.ranks = 4;
  run.precision = "bf16";
  run.priced_from = price_basis(cluster, DType::bf16);
  EXPECT_EQ(basis_line({&run, 1}),
            "Times are less certain than their bars: this machine was calibrated in other "
            "precisions (zerolab calibrate --ranks 4 --precision bf16).");
}

// The same bytes in less time, of which less is waited for.
TEST(Simulate, TensorMessagesBesideProductsTakeLessTime) {
  for (const bool sequence_parallel : {false, true}) {
    ScenarioOverrides overrides;
    overrides.cluster = "8xh100";
    overrides.software = "zerolab";
    overrides.strategies = {"zero-1"};
    overrides.edits.tensor = 4;
    overrides.edits.sequence_parallel = sequence_parallel;
    const Scenario scenario = load_scenario("gpt2-124m", overrides);
    const sim::ClusterSpec cluster = scenario_cluster(scenario);
    const auto priced = [&](bool overlap) {
      Strategy strategy = scenario.strategies[0].strategy;
      strategy.tensor.overlap = overlap;
      strategy.micro_batch = 16;  // a device that does not wait for its host
      return price_run(scenario,
                       record_run(scenario, strategy, sim::device_properties(cluster),
                                  program_options(scenario)),
                       cluster);
    };
    const RunResult plain = priced(false), beside = priced(true);
    EXPECT_EQ(beside.wire_bytes_per_step, plain.wire_bytes_per_step);
    EXPECT_LT(beside.step_time.median, plain.step_time.median);
    EXPECT_LT(beside.time.exposed_tensor, plain.time.exposed_tensor);
    EXPECT_GT(beside.time.exposed_tensor, 0) << "forwards wait for theirs";
  }
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
    std::vector<sim::Timeline> timelines;
    const RunResult priced = price_run(scenario, recording, cluster, &timelines);
    const auto curve =
        sim::memory_over_time(recording.trace, timelines.front().events, MemorySpace::device);
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

Scenario untied_on_eight_gpus() {
  ScenarioOverrides overrides;
  overrides.cluster = "8xh100";
  overrides.sequence_length = 1024;
  overrides.software = "zerolab";
  return load_scenario("llama3-8b", overrides);
}

ImportedStrategy with_pipeline(const Scenario& scenario, PipelineKind kind, int chunks,
                               std::int64_t micro_batches) {
  ImportedStrategy one = scenario.strategies[1];  // ZeRO-1
  one.strategy.pipeline = {.ranks = 4, .virtual_stages = chunks, .schedule = kind};
  one.strategy.gradient_accumulation = micro_batches;
  return one;
}

// One class a stage, priced together; all bytes that stages send each other are in the books.
TEST(Simulate, APipelineHasAClassForEachStageAndABubbleThatMicroBatchesFill) {
  const Scenario scenario = untied_on_eight_gpus();
  double bubble_share = 1;
  for (const std::int64_t micros : {4, 8, 16}) {
    const ImportedStrategy s = with_pipeline(scenario, PipelineKind::one_f_one_b, 1, micros);
    const Recording recording =
        record_run(scenario, s.strategy, sim::device_properties(scenario_cluster(scenario)),
                   program_options(scenario));
    EXPECT_EQ(recording.others.size(), 3U);
    EXPECT_EQ(recording.ranks.multiplicity(), 2);
    const RunResult result = Runner().run(scenario, s, "sim");
    ASSERT_EQ(result.outcome, Outcome::ok) << result.message;
    // Of the rank at the peak, the first: it sends each micro-batch's stream behind.
    const auto sent =
        std::find_if(result.communication.begin(), result.communication.end(),
                     [](const CollectiveTotals& each) { return each.collective == "send"; });
    ASSERT_NE(sent, result.communication.end());
    EXPECT_EQ(sent->group, "data");
    EXPECT_EQ(sent->axis, "pipeline");
    EXPECT_EQ(sent->count, micros * scenario.run.steps);
    EXPECT_EQ(sent->bytes, sent->count * s.strategy.micro_batch * scenario.run.sequence_length *
                               scenario.model.hidden * 2);
    const double share = result.time.bubble / result.step_time.median;
    EXPECT_LT(share, bubble_share);
    EXPECT_GT(share, 0.02);
    bubble_share = share;
  }
}

TEST(Simulate, InterleavingHalvesTheBubbleAndHoldsMore) {
  const Scenario scenario = untied_on_eight_gpus();
  const auto run = [&](PipelineKind kind, int chunks) {
    return Runner().run(scenario, with_pipeline(scenario, kind, chunks, 8), "sim");
  };
  const RunResult one = run(PipelineKind::one_f_one_b, 1);
  const RunResult two = run(PipelineKind::interleaved, 2);
  const RunResult all = run(PipelineKind::gpipe, 1);
  EXPECT_LT(two.time.bubble, 0.8 * one.time.bubble);
  const auto activations = [](const RunResult& result) {
    return result.peak_device.tag[static_cast<std::size_t>(MemoryTag::activation)];
  };
  EXPECT_GT(activations(two), activations(one));
  EXPECT_GT(activations(all), activations(two));
}

}  // namespace
}  // namespace zl
