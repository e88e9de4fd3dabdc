#include "scenarios/files/scenario.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "scenarios/files/catalog.h"
#include "scenarios/files/clusters.h"
#include "tests/scenarios/loading.h"
#include "tests/scenarios/message.h"
#include "tests/temp_folder.h"

namespace zl {
namespace {

constexpr auto kTiny = R"({
  // the smallest scenario
  "schema": 1, "model": "gpt2-tiny", "strategies": ["zero-2"],
  "run": {"ranks": 3, "steps": 2 /* two */}})";

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

// Bytes are what the demo's own model reads; another that trains on them forgets its language.
TEST(Scenario, AnotherModelThanTheFilesReadsWithItsOwnTokenizer) {
  const test::TempFolder folder;
  const std::string model = (folder / "model").string();
  std::filesystem::create_directory(model);
  std::ofstream(folder / "model" / "config.json")
      << R"({"model_type": "llama", "hidden_size": 32, "intermediate_size": 64,
      "num_hidden_layers": 1, "num_attention_heads": 2, "vocab_size": 300,
      "max_position_embeddings": 64})";
  ScenarioOverrides overrides;
  overrides.model = model;
  EXPECT_EQ(load_scenario("demo", overrides).run.tokenizer, "byte") << "it has none";
  std::ofstream(folder / "model" / "tokenizer.json") << "{}";
  EXPECT_EQ(load_scenario("demo", overrides).run.tokenizer, model);
  overrides.tokenizer = "byte";
  EXPECT_EQ(load_scenario("demo", overrides).run.tokenizer, "byte") << "asked for";
  std::ofstream(folder / "model" / "model.safetensors") << "weights";
  const std::string others = R"({"model": "gpt2-tiny", "run": {"weights": "others.safetensors"}})";
  EXPECT_EQ(load_text(others).run.weights, "others.safetensors");
  EXPECT_EQ(load_text(others, overrides).run.weights, model) << "and starts from its own weights";
  overrides.weights = "asked.safetensors";
  EXPECT_EQ(load_text(others, overrides).run.weights, "asked.safetensors");
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

}  // namespace
}  // namespace zl
