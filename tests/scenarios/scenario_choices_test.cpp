// Who decides what a scenario leaves open, and what is said of the choice.
#include <gtest/gtest.h>

#include <fstream>

#include "scenarios/files/clusters.h"
#include "scenarios/files/scenario.h"
#include "tests/scenarios/loading.h"
#include "tests/scenarios/message.h"
#include "tests/temp_folder.h"

namespace zl {
namespace {

TEST(Scenario, ABareModelTakesItsRanksFromTheCluster) {
  ScenarioOverrides o;
  o.cluster = "1024xh100";
  o.strategies = {"zero-3"};
  const Scenario s = load_scenario("gpt3-175b", o);
  EXPECT_EQ(s.run.ranks, 1024);
  EXPECT_EQ(s.run.sequence_length, 2048);
  EXPECT_EQ(s.strategies.at(0).strategy.precision.compute_dtype, DType::bf16);
  EXPECT_EQ(load_scenario("gpt2-tiny").run.ranks, 4);
  EXPECT_EQ(load_scenario("gpt2-tiny").strategies.size(), 5u);
  EXPECT_EQ(load_scenario("gpt2-tiny").strategies[0].strategy.precision.compute_dtype, DType::f32);
  o.cluster = "h200";
  o.model = "gpt2-tiny";
  EXPECT_EQ(load_scenario("", o).run.ranks, 1);
}

TEST(Scenario, AMachineThatWasMeasuredAndAProcessorRunThisCore) {
  ScenarioOverrides o;
  o.cluster = "local";
  EXPECT_EQ(scenario_software(load_scenario("gpt2-tiny", o)), "");
  o.software = "zerolab";
  EXPECT_EQ(scenario_software(load_scenario("gpt2-tiny", o)), "");
  o.software = "deepspeed";
  EXPECT_THROW(load_scenario("gpt2-tiny", o), Error);
}

TEST(Scenario, ASoftwareSlowsTheClusterAndBelongsToTheScenario) {
  ScenarioOverrides o;
  o.cluster = "8xa100-80";
  const Scenario unsaid = load_scenario("gpt2-124m", o);
  EXPECT_EQ(scenario_software(unsaid), "torch-fsdp2-compile");
  o.software = "zerolab";
  const Scenario own = load_scenario("gpt2-124m", o);
  o.software = "torch-fsdp2";
  const Scenario eager = load_scenario("gpt2-124m", o);
  EXPECT_GT(scenario_cluster(unsaid).device.launch_seconds,
            scenario_cluster(own).device.launch_seconds);
  EXPECT_GT(scenario_cluster(eager).device.launch_seconds,
            scenario_cluster(own).device.launch_seconds);
  EXPECT_NE(content_hash(eager), content_hash(own));
  EXPECT_EQ(content_hash(load_text(canonical_json(eager))), content_hash(eager));
  o.software = "torch-fsdp9";
  EXPECT_CONTAINS(message_of([&] { load_scenario("gpt2-124m", o); }),
                  "software: \"torch-fsdp9\" is neither in the catalogue nor a file; the nearest "
                  "name is \"torch-fsdp2\"");
  o.software = "torch-fsdp2";
  o.cluster = "local";
  EXPECT_CONTAINS(message_of([&] { load_scenario("gpt2-124m", o); }), "run.software");
}

// A scenario's micro-batch serves strategies that state none; the command line's overrides all.
TEST(Scenario, WhoDecidesTheBatch) {
  const std::string text =
      R"({"schema": 1, "model": "gpt2-tiny", "run": {"ranks": 2, "micro_batch": 3},
    "strategies": ["zero-2", {"train_micro_batch_size_per_gpu": 5}]})";
  const Scenario own = load_text(text);
  EXPECT_EQ(own.strategies[0].strategy.micro_batch, 3);
  EXPECT_EQ(own.strategies[1].strategy.micro_batch, 5);
  EXPECT_EQ(canonical_json(load_text(canonical_json(own))), canonical_json(own));
  ScenarioOverrides o;
  o.micro_batch = 7;
  const Scenario forced = load_text(text, o);
  EXPECT_EQ(forced.strategies[0].strategy.micro_batch, 7);
  EXPECT_EQ(forced.strategies[1].strategy.micro_batch, 7);
}

// Flags and files follow one rule: --precision and run.precision, else the strategy's file, else
// what the cluster's devices compute fastest.
TEST(Scenario, WhoDecidesThePrecision) {
  const auto precision = [](const std::string& cluster, const std::string& strategy,
                            const std::string& run = "") {
    return load_text(R"({"model": "gpt2-tiny", "cluster": ")" + cluster + R"(", "strategies": [)" +
                     strategy + R"(], "run": {"ranks": 1, "micro_batch": 1)" + run + "}}")
        .strategies[0]
        .strategy.precision.compute_dtype;
  };
  const auto by_flags = [](const std::string& cluster) {
    ScenarioOverrides o;
    o.cluster = cluster;
    return load_scenario("gpt2-tiny", o).strategies[0].strategy.precision.compute_dtype;
  };
  for (const auto& [cluster, dtype] :
       {std::pair{"8xh100", DType::bf16}, {"8xv100", DType::f16}, {"local", DType::f32}}) {
    EXPECT_EQ(precision(cluster, "\"zero-3\""), dtype) << cluster;
    EXPECT_EQ(precision(cluster, "{\"zero_optimization\": {\"stage\": 1}}"), dtype) << cluster;
    EXPECT_EQ(by_flags(cluster), dtype) << cluster;
    EXPECT_EQ(precision(cluster, R"({"fp16": {"enabled": true}})"), DType::f16) << cluster;
    EXPECT_EQ(precision(cluster, R"({"bf16": {"enabled": true}})"), DType::bf16) << cluster;
    EXPECT_EQ(precision(cluster, R"({"bf16": {"enabled": false}})"), DType::f32) << cluster;
    EXPECT_EQ(precision(cluster, R"({"fp16": {"enabled": true}})", R"(, "precision": "bf16")"),
              DType::bf16)
        << cluster;
  }
}

TEST(Scenario, WarnsOfATypeThatTheDevicesLack) {
  ScenarioOverrides o;
  o.cluster = "8xv100";
  o.strategies = {"zero-1"};
  EXPECT_TRUE(load_scenario("gpt2-tiny", o).strategies[0].warnings.empty());
  o.precision = "bf16";
  ASSERT_EQ(load_scenario("gpt2-tiny", o).strategies[0].warnings.size(), 1u);
  EXPECT_EQ(load_scenario("gpt2-tiny", o).strategies[0].warnings[0],
            "bf16 is no faster than fp32 on 8xv100, whose default is fp16");
}

TEST(Scenario, WhatIsCutIsSaid) {
  ScenarioOverrides o;
  o.cluster = "8xh100";
  o.strategies = {"zero-1"};
  o.device_memory = "80GiB";
  EXPECT_TRUE(load_scenario("gpt2-tiny", o).strategies[0].warnings.empty());
  o.device_memory = "200GiB";
  const std::vector<std::string> warnings = load_scenario("gpt2-tiny", o).strategies[0].warnings;
  ASSERT_EQ(warnings.size(), 1u);
  EXPECT_CONTAINS(warnings[0], "200.00 GiB is more than the 80.00 GiB of a device of 8xh100");
  o = {};
  o.cluster = "8xh100";
  o.ranks = 9;
  EXPECT_CONTAINS(message_of([&] { load_scenario("gpt2-tiny", o); }),
                  "run.ranks: 9 is more than the devices of 8xh100; use --cluster 9xh100");
  o.ranks = 8;
  EXPECT_NO_THROW(load_scenario("gpt2-tiny", o));
}

TEST(Scenario, ASlidingWindowIsTheDefaultLength) {
  ScenarioOverrides o;
  o.strategies = {"zero-1"};
  const Scenario windowed = load_scenario("mistral-7b", o);
  EXPECT_EQ(windowed.model.max_sequence, 32768);
  EXPECT_EQ(windowed.run.sequence_length, 4096);
  ASSERT_EQ(windowed.strategies[0].warnings.size(), 1u);
  EXPECT_CONTAINS(windowed.strategies[0].warnings[0], "sequences of 4096");
  o.sequence_length = 4096;
  EXPECT_TRUE(load_scenario("mistral-7b", o).strategies[0].warnings.empty());
  o.sequence_length = 4097;
  EXPECT_EQ(load_scenario("mistral-7b", o).run.sequence_length, 4097) << "the window slides";
  EXPECT_EQ(
      load_scenario("phi-3-mini", ScenarioOverrides{.strategies = {"zero-1"}}).run.sequence_length,
      4096);
}

TEST(Scenario, LongerThanTheModelIsMadeForIsSaid) {
  ScenarioOverrides o;
  o.strategies = {"zero-1"};
  o.sequence_length = 300;
  const Scenario longer = load_scenario("llama-tiny", o);
  ASSERT_EQ(longer.strategies[0].warnings.size(), 1u);
  EXPECT_CONTAINS(longer.strategies[0].warnings[0], "sequences of 300 are longer than the ");
  EXPECT_CONTAINS(message_of([&] { load_scenario("gpt2-tiny", o); }), "learned positions");
}

TEST(Scenario, AnotherClusterHasItsOwnRanks) {
  const test::TempFolder folder;
  const std::string file = folder / "eight.json";
  std::ofstream(file) << R"({"schema": 1, "model": "gpt2-124m", "cluster": "8xh100",
                             "strategies": ["zero-2"], "run": {"ranks": 8}})";
  ScenarioOverrides o;
  EXPECT_EQ(load_scenario(file, o).run.ranks, 8);
  o.cluster = "16xh100";
  const Scenario followed = load_scenario(file, o);
  EXPECT_EQ(followed.run.ranks, 16);
  ASSERT_EQ(followed.strategies[0].warnings.size(), 1u);
  EXPECT_CONTAINS(followed.strategies[0].warnings[0], "all 16 of --cluster 16xh100, not the 8");
  o.ranks = 8;
  EXPECT_EQ(load_scenario(file, o).run.ranks, 8) << "pinned";
}

}  // namespace
}  // namespace zl
