#include "scenarios/files/scenario.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "scenarios/files/catalog.h"
#include "scenarios/files/clusters.h"
#include "scenarios/files/load_scenario.h"
#include "scenarios/files/model_file.h"
#include "scenarios/files/strategy_file.h"
#include "scenarios/report/show.h"
#include "tests/scenarios/message.h"
#include "tests/temp_folder.h"

namespace zl {
namespace {

constexpr auto kTiny = R"({
  // the smallest scenario
  "schema": 1, "model": "gpt2-tiny", "strategies": ["zero-2"],
  "run": {"ranks": 3, "steps": 2 /* two */}})";

Scenario load_text(const std::string& text, const ScenarioOverrides& overrides = {}) {
  return scenario_from_json(text, "test.json", overrides);
}

std::string error_of(const std::string& text, const ScenarioOverrides& overrides = {}) {
  return message_of([&] { load_text(text, overrides); });
}

TEST(Scenario, ReadsAFile) {
  const Scenario scenario = load_text(kTiny);
  EXPECT_EQ(scenario.name, "test");
  EXPECT_EQ(scenario.model.name, "gpt2-tiny");
  EXPECT_EQ(scenario.cluster, "local");
  EXPECT_EQ(scenario.run.ranks, 3);
  EXPECT_EQ(scenario.run.steps, 2);
  EXPECT_EQ(scenario.run.sequence_length, 64);
  ASSERT_EQ(scenario.strategies.size(), 1u);
  EXPECT_EQ(scenario.strategies[0].strategy.zero.stage, 2);
  EXPECT_EQ(scenario.strategies[0].strategy.zero.reduce_bucket_size, 64 * 64);
}

TEST(Scenario, Demo) {
  const Scenario demo = load_scenario("demo");
  EXPECT_EQ(demo.name, "demo");
  EXPECT_EQ(demo.run.ranks, 4);
  EXPECT_EQ(demo.run.data, "bible");
  EXPECT_EQ(demo.strategies.size(), 5u);
}

TEST(Scenario, OverridesWin) {
  ScenarioOverrides o;
  o.model = "llama-tiny";
  o.cluster = "8xh100";
  o.strategies = {"zero-1", "zero-3"};
  o.ranks = 8;
  o.steps = 5;
  o.seed = 99;
  o.sequence_length = 32;
  o.micro_batch = 3;
  o.gradient_accumulation = 2;
  o.precision = "bf16";
  o.device_memory = "1GiB";
  o.deterministic = false;
  o.communicator = "mpi";
  o.data = "text.txt";
  o.tokenizer = "folder";
  const Scenario s = load_text(kTiny, o);
  EXPECT_EQ(s.model.name, "llama-tiny");
  EXPECT_EQ(s.cluster, "8xh100");
  ASSERT_EQ(s.strategies.size(), 2u);
  EXPECT_EQ(s.strategies[1].strategy.name, "zero-3");
  EXPECT_EQ(s.strategies[1].strategy.micro_batch, 3);
  EXPECT_EQ(s.strategies[1].strategy.gradient_accumulation, 2);
  EXPECT_EQ(s.strategies[1].strategy.precision.compute_dtype, DType::bf16);
  EXPECT_EQ(s.run.ranks, 8);
  EXPECT_EQ(s.run.steps, 5);
  EXPECT_EQ(s.run.seed, 99u);
  EXPECT_EQ(s.run.sequence_length, 32);
  EXPECT_EQ(s.run.device_memory, std::int64_t{1} << 30);
  EXPECT_FALSE(s.run.deterministic);
  EXPECT_EQ(s.run.communicator, "mpi");
  EXPECT_EQ(scenario_from_json(canonical_json(s), "again").run.communicator, "mpi");
  EXPECT_EQ(canonical_json(load_text(kTiny)).find("communicator"), std::string::npos);
  EXPECT_TRUE(load_text(kTiny).run.deterministic);
  EXPECT_EQ(s.run.data, "text.txt");
  EXPECT_EQ(s.run.tokenizer, "folder");
}

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

// A cluster of no catalogue.
std::string two_h100() {
  sim::ClusterSpec cluster = load_cluster("2xh100");
  cluster.name = "two";
  return sim::cluster_json(cluster);
}

TEST(Scenario, InlineObjects) {
  const Scenario s = load_text(R"({"name": "mine", "model": {"layers": 1, "hidden": 32, "heads": 2,
      "vocab": 100, "max_sequence": 16, "x-note": 1},
      "cluster": )" + two_h100() +
                               R"(, "run": {"ranks": 2},
      "strategies": [{"train_batch_size": 4, "zero_optimization": {"stage": 1}}, "ddp"]})");
  EXPECT_EQ(s.name, "mine");
  EXPECT_EQ(s.cluster, "two");
  EXPECT_CONTAINS(s.cluster_json, "\"devices\":2");
  EXPECT_EQ(s.strategies[1].strategy.precision.compute_dtype, DType::bf16);
  EXPECT_EQ(s.strategies[0].strategy.name, "strategy-1");
  EXPECT_EQ(s.strategies[0].strategy.micro_batch, 2);
  EXPECT_EQ(s.strategies[1].strategy.name, "zero-0");
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

TEST(Scenario, PathsAreRelativeToTheFile) {
  const test::TempFolder folder;
  std::ofstream(folder / "my_z2.json")
      << R"({"train_batch_size": 4, "zero_optimization": {"stage": 2}})";
  std::ofstream(folder / "small.json") << R"({"layers": 1, "hidden": 8, "heads": 1, "vocab": 9})";
  std::ofstream(folder / "words.txt") << "words";
  std::ofstream(folder / "s.json")
      << R"({"model": "small.json", "strategies": ["my_z2.json"], "run": {"ranks": 2, "data": "words.txt"}})";
  const Scenario s = load_scenario((folder / "s.json").string());
  EXPECT_EQ(s.name, "s");
  EXPECT_EQ(s.model.name, "small");
  EXPECT_EQ(s.strategies[0].strategy.name, "my_z2");
  EXPECT_EQ(s.strategies[0].strategy.micro_batch, 2);
  EXPECT_EQ(s.run.data, (folder / "words.txt").string());
}

TEST(Scenario, BadInputNamesTheKey) {
  const auto run = [](const std::string& body) {
    return error_of(R"({"model": "gpt2-tiny", "run": {)" + body + "}}");
  };
  EXPECT_CONTAINS(run("\"ranks\": 0"), "run.ranks: 0 is not in 1..");
  EXPECT_CONTAINS(run("\"steps\": 1000001"), "run.steps: 1000001 is not in 1..1000000");
  EXPECT_CONTAINS(run("\"steps\": 0"), "run.steps: 0 is not in 1..");
  EXPECT_CONTAINS(run("\"steps\": \"ten\""), "run.steps: \"ten\" is not a whole number");
  EXPECT_CONTAINS(run("\"rank\": 4"),
                  "run.rank: unknown key; the nearest known key is \"run.ranks\"");
  EXPECT_CONTAINS(run("\"sequence_length\": 65"),
                  "run.sequence_length: 65 is above the 64 learned positions");
  EXPECT_CONTAINS(run("\"device_memory\": \"16 parsecs\""), "run.device_memory");
  EXPECT_CONTAINS(run("\"deterministic\": 1"), "run.deterministic: 1 is not");
  EXPECT_CONTAINS(run("\"communicator\": \"nccl\""), "run.communicator: \"nccl\" is not one of");
  EXPECT_CONTAINS(run("\"precision\": \"fp8\""),
                  "run.precision: \"fp8\" is not one of fp32, bf16, fp16");
  EXPECT_CONTAINS(error_of("{\"modle\": \"gpt2-tiny\"}"),
                  "modle: unknown key; the nearest known key is \"model\"");
  EXPECT_CONTAINS(error_of("{\"schema\": 2, \"model\": \"gpt2-tiny\"}"), "schema: 2 is not 1");
  EXPECT_CONTAINS(error_of("{}"), "model: missing");
  EXPECT_CONTAINS(
      error_of("{\"model\": {\"layers\": 2, \"hidden\": 30, \"heads\": 4, \"vocab\": 9}}"),
      "model.heads: 4 does not divide model.hidden 30");
  EXPECT_CONTAINS(error_of("{\"model\": {\"layer\": 2}}"), "model.layer: unknown key");
  EXPECT_CONTAINS(error_of("{\"model\": \"gpt2-tiny\", \"strategies\": []}"),
                  "strategies: [] is not a list");
  EXPECT_CONTAINS(error_of(R"({"model": "gpt2-tiny", "strategies": ["zero-1", "zero-1"]})"),
                  "occurs twice");
  EXPECT_CONTAINS(error_of(R"({"model": "gpt2-tiny", "strategies": [{"train_batch_size": 4,
      "zero_optimization": {"stage": 4}}]})"),
                  "strategy.zero_optimization.stage: 4 is not one of 0, 1, 2, 3");
  EXPECT_CONTAINS(error_of(R"({"model": "gpt2-tiny", "strategies": [{"train_batch_size": 4,
      "zero_optimization": {"stage": 3, "zero_quantized_nontrainable_weights": true}}]})"),
                  "recognised, not implemented yet");
  EXPECT_CONTAINS(error_of("{\n\"model\": \n}"), "test.json:3:1: malformed JSON");
  EXPECT_CONTAINS(message_of([] { load_scenario("dmeo"); }), "the nearest name is \"demo\"");
}

TEST(Scenario, RealBackendsRunOneTo64Ranks) {
  ScenarioOverrides o;
  for (const std::int64_t ranks : {1, 64}) {
    o.ranks = ranks;
    EXPECT_NO_THROW(check_real_ranks(load_text(kTiny, o), "cpu"));
  }
  o.ranks = 65;
  const Scenario many = load_text(kTiny, o);
  EXPECT_CONTAINS(message_of([&] { check_real_ranks(many, "cpu"); }),
                  "run.ranks: 65 is not in 1..64");
}

TEST(Scenario, CanonicalJsonLoadsToItself) {
  for (const char* name : {"demo", "tiny-gpt2", "tiny-llama", "mistral-7b"}) {
    const Scenario s = load_scenario(name);
    const std::string text = canonical_json(s);
    const Scenario again = load_text(text);
    EXPECT_EQ(canonical_json(again), text);
    EXPECT_EQ(content_hash(again), content_hash(s));
    EXPECT_EQ(content_hash(s).size(), 16u);
  }
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

TEST(Scenario, OtherFilesAreNamedWithTheLineThatTakesThem) {
  const test::TempFolder temporary;
  const std::string folder = temporary.string() + "/";
  const auto refusal = [&](const char* name, const char* text) {
    std::ofstream(folder + name) << text;
    return message_of([&] { load_scenario(folder + name); });
  };
  EXPECT_CONTAINS(refusal("weights.json", "PK\x03\x04"), "weights.json: this is a zip archive");
  EXPECT_CONTAINS(refusal("ds.json", R"({"zero_optimization": {"stage": 2}})"),
                  "--strategy " + folder + "ds.json");
  EXPECT_CONTAINS(refusal("s.json", R"({"model": "gpt2-tiny", "run": {"rank": 4}})"),
                  folder + "s.json: run.rank: unknown key");
  EXPECT_CONTAINS(message_of([] { load_scenario("nothing"); }), "`zerolab show models`");
}

TEST(Scenario, AModelsFileOrFolderIsAScenarioOfItAlone) {
  const test::TempFolder temporary;
  const std::filesystem::path folder = temporary / "my-llama";
  std::filesystem::create_directories(folder);
  std::ofstream(folder / "config.json")
      << R"({"model_type": "llama", "hidden_size": 64, "intermediate_size": 128,
             "num_hidden_layers": 2, "num_attention_heads": 4, "vocab_size": 256,
             "max_position_embeddings": 131072})";
  for (const std::string& path : {folder.string(), (folder / "config.json").string()}) {
    const Scenario scenario = load_scenario(path);
    EXPECT_EQ(scenario.name, "my-llama") << "not config";
    EXPECT_EQ(scenario.model.name, "my-llama");
    EXPECT_EQ(scenario.strategies.size(), 5u);
    ASSERT_FALSE(scenario.strategies[0].warnings.empty());
    EXPECT_CONTAINS(scenario.strategies[0].warnings[0], "131072 tokens, the longest of my-llama");
    EXPECT_CONTAINS(scenario.strategies[0].warnings[0], "--sequence-length 8k");
  }
  EXPECT_EQ(load_model(folder.string()).layers, 2);
  ScenarioOverrides o;
  o.strategies = {(folder / "config.json").string()};
  EXPECT_CONTAINS(message_of([&] { load_scenario("gpt2-tiny", o); }),
                  "config.json: this is a model, not a strategy; use --model ");
}

TEST(Scenario, NamesAreFoundInAnyCase) {
  ScenarioOverrides o;
  o.cluster = "8xH100";
  o.precision = "BF16";
  o.strategies = {"ZeRO-2"};
  const Scenario loose = load_scenario("Llama-3-8B", o);
  o.cluster = "8xh100";
  o.precision = "bf16";
  o.strategies = {"zero-2"};
  const Scenario exact = load_scenario("llama3-8b", o);
  EXPECT_EQ(canonical_json(loose), canonical_json(exact));
  EXPECT_EQ(canonical_cluster("LOCAL"), "local");
  EXPECT_EQ(canonical_cluster("8xa100"), "8xa100") << "two of them";
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

TEST(Scenario, EditsAreOfEveryStrategy) {
  ScenarioOverrides o;
  o.strategies = {"zero-2", "zero-3"};
  o.edits = {.recompute = "full", .offload = "cpu", .lr = 1e-4};
  const Scenario scenario = load_scenario("gpt2-tiny", o);
  const Strategy &two = scenario.strategies[0].strategy, &three = scenario.strategies[1].strategy;
  EXPECT_EQ(two.name, "zero-2+recompute-full+offload-cpu+lr-0.0001");
  for (const Strategy* each : {&two, &three}) {
    EXPECT_EQ(each->recompute.mode, RecomputeMode::full);
    EXPECT_EQ(each->offload.optimizer, Tier::cpu);
    EXPECT_EQ(each->optimizer.lr, 1e-4);
  }
  EXPECT_EQ(two.offload.parameters, Tier::device) << "only stage 3 has weights to offload";
  EXPECT_EQ(three.offload.parameters, Tier::cpu);
  o.edits = {.recompute = {}, .offload = {}, .lr = 1e-3, .warmup = 30};
  const Strategy warm = load_scenario("gpt2-tiny", o).strategies[0].strategy;
  EXPECT_EQ(warm.name, "zero-2+lr-0.001+warmup-30");
  EXPECT_EQ(warm.schedule.kind, ScheduleKind::warmup_lr);
  EXPECT_EQ(warm.schedule.warmup_num_steps, 30);
  EXPECT_EQ(warm.schedule.warmup_max_lr, 1e-3) << "the optimizer's";
  EXPECT_FALSE(warm.schedule.warmup_log);
  o.edits = {.recompute = {}, .offload = "disk", .lr = {}};
  EXPECT_CONTAINS(message_of([&] { load_scenario("gpt2-tiny", o); }),
                  "offload: \"disk\" is not one of none, cpu, nvme");
}

TEST(Scenario, EditsCutEveryStrategyOverAPipeline) {
  ScenarioOverrides o;
  o.strategies = {"zero-1"};
  o.ranks = 8;
  o.gradient_accumulation = 8;
  o.edits.pipeline = 2;
  const Strategy plain = load_scenario("gpt2-tiny", o).strategies[0].strategy;
  EXPECT_EQ(plain.name, "zero-1+pp2");
  EXPECT_EQ(plain.pipeline, (PipelineConfig{.ranks = 2}));
  o.edits.virtual_stages = 2;
  const Strategy two = load_scenario("gpt2-tiny", o).strategies[0].strategy;
  EXPECT_EQ(two.name, "zero-1+pp2+v2");
  EXPECT_EQ(two.pipeline.schedule, PipelineKind::interleaved);
  o.edits.schedule = "breadth-first";
  o.edits.layers_per_stage = "1,1,1,1";
  const Strategy named = load_scenario("gpt2-tiny", o).strategies[0].strategy;
  EXPECT_EQ(named.name, "zero-1+pp2+v2+breadth-first+layers-1-1-1-1");
  EXPECT_EQ(named.pipeline, (PipelineConfig{.ranks = 2,
                                            .virtual_stages = 2,
                                            .schedule = PipelineKind::breadth_first,
                                            .layers_per_stage = {1, 1, 1, 1}}));
}

TEST(Scenario, EditsCutEveryStrategyOverATensorGroup) {
  ScenarioOverrides o;
  o.strategies = {"zero-1"};
  o.ranks = 8;
  o.edits.tensor = 4;
  o.edits.sequence_parallel = true;
  const Strategy s = load_scenario("gpt2-tiny", o).strategies[0].strategy;
  EXPECT_EQ(s.name, "zero-1+tp4+sp");
  EXPECT_EQ(s.tensor, (TensorConfig{.ranks = 4, .sequence_parallel = true}));
}

TEST(Scenario, EditsSplitLayersByNameAndRefuseOthers) {
  ScenarioOverrides o;
  o.strategies = {"zero-1"};
  o.ranks = 4;
  o.edits.pipeline = 2;
  o.edits.layers_per_stage = "parameters";
  const Strategy s = load_scenario("gpt2-tiny", o).strategies[0].strategy;
  EXPECT_EQ(s.name, "zero-1+pp2+layers-parameters");
  EXPECT_EQ(s.pipeline, (PipelineConfig{.ranks = 2, .split = LayerSplit::parameters}));
  o.edits.layers_per_stage = "1,x";
  EXPECT_CONTAINS(message_of([&] { load_scenario("gpt2-tiny", o); }), "\"1,x\" is not one of even");
  o.edits.layers_per_stage = "3,-1";
  EXPECT_CONTAINS(message_of([&] { load_scenario("gpt2-tiny", o); }),
                  "-1 is not a number of layers");
}

TEST(Scenario, HashDependsOnContentOnly) {
  const Scenario plain = load_text(kTiny);
  Scenario renamed = plain;
  renamed.name = "other";
  EXPECT_EQ(content_hash(plain), content_hash(renamed));
  // Order of keys, comments and spelled-out defaults do not matter.
  EXPECT_EQ(content_hash(plain),
            content_hash(load_text(R"({"run": {"steps": 2, "ranks": 3, "seed": 1234,
      "sequence_length": 64}, "strategies": ["zero-2"], "cluster": "local", "model": "gpt2-tiny"})")));
  ScenarioOverrides o;
  o.seed = 5;
  EXPECT_NE(content_hash(plain), content_hash(load_text(kTiny, o)));
  o = {};
  o.precision = "bf16";
  EXPECT_NE(content_hash(plain), content_hash(load_text(kTiny, o)));
}

TEST(Show, Model) {
  const ModelConfig model = load_model("llama3-8b");
  const Json shown = show_model(model);
  EXPECT_EQ(shown["parameters"], 8'030'261'248);
  EXPECT_EQ(shown["sequence_length"], 8192);
  EXPECT_EQ(shown["bytes"]["states_mixed_adam"], (2 + 4 + 12) * model.parameters());
  EXPECT_DOUBLE_EQ(shown["flops_per_token"],
                   6.0 * (8030261248 - 128256 * 4096) + 12.0 * 32 * 4096 * 8192);
  for (const std::string name : {"llama3-8b", "gpt2-124m", "qwen2.5-0.5b"}) {
    const Json units = show_model(load_model(name))["units"];
    std::int64_t sum = 0;
    for (const Json& unit : units) {
      sum += unit["count"].get<std::int64_t>() * unit["parameters"].get<std::int64_t>();
    }
    EXPECT_EQ(sum, load_model(name).parameters()) << name;
  }
  // Llama-3-8B: 2 norms, q k v, output, gate up down.
  EXPECT_EQ(shown["units"][1]["parameters"],
            2 * 4096 + 4096 * (4096 + 2 * 1024) + 4096 * 4096 + 3 * 4096 * 14336);
}

TEST(Show, StrategyHasTheContractKeys) {
  const ImportedStrategy imported = inspect_deepspeed(
      R"({"train_batch_size": 8, "zero_optimization": {"stage": 2, "stagee": 1}})", "f.json", {4});
  const Json shown = show_strategy(imported, 4);
  ASSERT_FALSE(shown["effects"].empty());
  for (const Json& row : shown["effects"]) {
    ASSERT_EQ(row.size(), 5u);
    for (const char* key : {"key", "given", "effective", "status", "why"}) {
      EXPECT_TRUE(row.contains(key)) << row.dump();
    }
  }
  EXPECT_EQ(shown["effects"][0]["key"], "train_batch_size");
  EXPECT_EQ(shown["effects"][0]["given"], 8);
  EXPECT_EQ(shown["effects"][0]["status"], "honoured");
  EXPECT_EQ(shown["derived"]["train_batch_size"], 8);
  EXPECT_EQ(shown["rejections"].size(), 1u);
}

}  // namespace
}  // namespace zl
