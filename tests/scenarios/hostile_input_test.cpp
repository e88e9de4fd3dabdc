// Input that means harm: names that are paths, JSON without a bottom, values of megabytes, texts
// that are none, numbers beyond their types. Each is an error that names what and how.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "scenarios/files/import_huggingface.h"
#include "scenarios/files/load_scenario.h"
#include "scenarios/files/model_file.h"
#include "scenarios/files/strategy_json.h"
#include "simulator/cluster/cluster_spec.h"
#include "simulator/cluster/software.h"
#include "tests/results/fixtures.h"
#include "tests/scenarios/importing.h"
#include "tests/temp_folder.h"

namespace zl {
namespace {

const std::vector<std::string> kNoNames = {"../../x", "/abs/x", "a\\b", "..",     ".x",
                                           "-x",      "",       "a\nb", "\x1b[2J"};

Json tiny_scenario() {
  return {{"schema", 1},
          {"name", "tiny"},
          {"model", "gpt2-tiny"},
          {"strategies", {"zero-2"}},
          {"run", {{"ranks", 2}, {"steps", 2}, {"data", "synthetic"}}}};
}

std::string scenario_refusal(const Json& scenario, const ScenarioOverrides& overrides = {}) {
  return message_of([&] { scenario_from_json(to_text(scenario), "file.json", overrides); });
}

TEST(HostileNames, OfStrategiesAreRefused) {
  for (const std::string& name : kNoNames) {
    const Json file = {{"train_micro_batch_size_per_gpu", 1}, {"x-zerolab", {{"name", name}}}};
    EXPECT_CONTAINS(rejection(to_text(file)), "strategy.x-zerolab.name: ");
    EXPECT_THROW(inspect_deepspeed(to_text(file), "test.json", four_ranks()), Error);
    Json scenario = tiny_scenario();
    scenario["strategies"] = Json::array({file});
    EXPECT_CONTAINS(scenario_refusal(scenario), "strategy.x-zerolab.name: ");
  }
}

TEST(HostileNames, OfScenariosAreRefused) {
  for (const std::string& name : kNoNames) {
    Json scenario = tiny_scenario();
    scenario["name"] = name;
    EXPECT_CONTAINS(scenario_refusal(scenario), "name: ");
  }
}

TEST(HostileNames, OfFilesAreRefusedWhereTheyBecomeNames) {
  const std::string batch = "{\"train_micro_batch_size_per_gpu\": 1}";
  for (const char* file : {"dir/.json", "dir/-x.json", "dir/a\nb.json", "dir/a\xff.json"}) {
    EXPECT_CONTAINS(message_of([&] { import_deepspeed(batch, file, four_ranks()); }),
                    "strategy: the file's name, without x-zerolab.name: ");
  }
  EXPECT_EQ(import_deepspeed(batch, "dir/mine (2).json", four_ranks()).strategy.name, "mine (2)");
  EXPECT_EQ(import_deepspeed(batch, "dir/ds_config", four_ranks()).strategy.name, "ds_config");
  Json scenario = tiny_scenario();
  scenario.erase("name");
  EXPECT_CONTAINS(message_of([&] { scenario_from_json(to_text(scenario), "dir/\x1b.json"); }),
                  "scenario: the file's name, without the key \"name\": \"\\u001b\" is no name");
}

// A copy or a message of it would recurse until the stack ends.
TEST(HostileJson, WithoutABottomIsRefusedByEveryReader) {
  const std::string lists(100'000, '['), ends(100'000, ']');
  std::string objects;
  for (int i = 0; i < 100'000; ++i) objects += "{\"model_type\":";
  for (const std::string& value : {lists + ends, lists, objects}) {
    const std::string text = "{\"model_type\": " + value + "}";
    const auto is_named = [](auto&& call) { EXPECT_CONTAINS(message_of(call), "100 deep"); };
    is_named([&] { scenario_from_json(text, "f.json"); });
    is_named([&] { import_text(text); });
    is_named([&] { import_huggingface(text, "f.json"); });
    is_named([&] { sim::parse_cluster(text, "f.json"); });
    is_named([&] { sim::parse_software(text, "f.json"); });
    is_named([&] { parse_json(text, "f.json"); });
  }
}

// Every text of a scenario, a model and a strategy as a megabyte, and as an unknown key.
TEST(HostileJson, MessagesHoldTheBeginningOfLongValues) {
  const std::string large(1'000'000, 'x');
  const auto is_short = [](const std::string& message) {
    EXPECT_LT(message.size(), 2'000u) << message.substr(0, 300);
    EXPECT_CONTAINS(message, "xxx... (");
  };
  for (const char* key : {"schema", "model", "cluster", "strategies"}) {
    Json scenario = tiny_scenario();
    scenario[key] = large;
    is_short(scenario_refusal(scenario));
  }
  for (const char* key : {"ranks", "seed", "precision", "device_memory", "link_bandwidth",
                          "communicator", "deterministic"}) {
    Json scenario = tiny_scenario();
    scenario["run"][key] = large;
    is_short(scenario_refusal(scenario));
  }
  for (const char* section : {"", "run"}) {
    Json scenario = tiny_scenario();
    (*section == '\0' ? scenario : scenario[section])[large] = 1;
    is_short(scenario_refusal(scenario));
  }
  for (const char* key : {"zero_optimization", "optimizer", "gradient_clipping", "bf16", "fp16",
                          "communication_data_type", "gradient_allreduce_op"}) {
    is_short(rejection(with("\"" + std::string(key) + "\": \"" + large + "\"")));
  }
  is_short(rejection(with("\"optimizer\": {\"type\": \"" + large + "\"}")));
  is_short(rejection(with("\"scheduler\": {\"type\": \"" + large + "\"}")));
  is_short(rejection(with("\"x-zerolab\": {\"recompute\": \"" + large + "\"}")));
  is_short(rejection(with("\"" + large + "\": 1")));
  for (const std::string& key : {std::string("family"), std::string("norm"), large}) {
    is_short(message_of([&] { model_from_json({{key, large}}, "f"); }));
  }
  is_short(message_of([&] { parse_json("{\"a\": \"" + large, "f.json"); }));
}

TEST(HostileJson, ManyUnknownKeysAreCountedNotListed) {
  std::string keys;
  for (int i = 0; i < 2'000; ++i) keys += "\"wrong" + std::to_string(i) + "\": 1, ";
  const std::string message = rejection("{" + keys + "\"train_batch_size\": 4}");
  EXPECT_CONTAINS(message, "... and 1980 more");
  EXPECT_LT(message.size(), 5'000u);
}

TEST(HostileText, ThatIsNotUtf8IsNamedByItsKey) {
  const std::string bad = "/tmp/\xff.txt";
  const auto named = [&](auto member, const char* key) {
    ScenarioOverrides overrides;
    overrides.*member = bad;
    const std::string message = scenario_refusal(tiny_scenario(), overrides);
    EXPECT_CONTAINS(message, key);
    EXPECT_CONTAINS(message, "is not UTF-8");
    EXPECT_CONTAINS(message, "\\xff");
  };
  named(&ScenarioOverrides::data, "run.data: ");
  named(&ScenarioOverrides::tokenizer, "run.tokenizer: ");
  Json scenario = tiny_scenario();
  scenario["strategies"] = {"zero-3-offload-nvme"};
  ScenarioOverrides overrides;
  overrides.nvme_path = bad;
  EXPECT_CONTAINS(scenario_refusal(scenario, overrides), "nvme_path: ");
  scenario["run"]["data"] = std::string("a\0b", 3);
  EXPECT_CONTAINS(scenario_refusal(scenario), "run.data: \"a\\u0000b\" is not UTF-8 without NUL");
}

TEST(HostileText, OfAFolderIsNamedByTheKeyThatPointsIntoIt) {
  const test::TempFolder folder;
  const std::string inside = (folder / "\xff").string();
  std::filesystem::create_directory(inside);
  std::ofstream(inside + "/text.txt") << "text";
  Json scenario = tiny_scenario();
  scenario["run"]["data"] = "text.txt";
  EXPECT_CONTAINS(
      message_of([&] { scenario_from_json(to_text(scenario), inside + "/scenario.json"); }),
      "run.data: ");
}

TEST(HostileText, ThatIsTooLongForAPathIsAnUnknownName) {
  Json scenario = tiny_scenario();
  scenario["model"] = std::string(5'000, 'x');
  EXPECT_CONTAINS(scenario_refusal(scenario), "is neither in the catalogue nor a file");
}

TEST(HostileText, ThatIsMeantAsAPathIsNoNameOfAModel) {
  const auto refusal = [](const std::string& model) {
    return message_of([&] { load_scenario("", {.model = model}); });
  };
  EXPECT_CONTAINS(refusal("/no/such/place"),
                  "model: there is no file or folder \"/no/such/place\"");
  const test::TempFolder empty;
  EXPECT_CONTAINS(refusal(empty.string()),
                  "model: the folder \"" + empty.string() + "\" has no config.json");
  Json scenario = tiny_scenario();
  scenario["model"] = "no/such/place";
  EXPECT_CONTAINS(scenario_refusal(scenario), "model: there is no file or folder");
  EXPECT_CONTAINS(message_of([] { load_scenario("no/such.json"); }),
                  "scenario: there is no file \"no/such.json\"");
}

TEST(HostileNumbers, MemoryBeyondItsTypeIsRefused) {
  const Json link = {{"name", "l"}, {"bandwidth", 1e9}, {"hop_seconds", 1e-6}};
  Json cluster = {{"schema", 1},
                  {"name", "c"},
                  {"node_devices", 8},
                  {"links", {{"intra", link}, {"inter", link}, {"host", link}}}};
  cluster["device"] = {{"name", "d"},
                       {"memory_bandwidth", 1e12},
                       {"peak_flops", {{"fp32", 1e13}}},
                       {"gemm_efficiency", {{"fp32", 0.8}}}};
  const auto parse = [&] { return sim::parse_cluster(to_text(cluster), "f.json"); };
  for (const Json& memory : {Json(1e308), Json(UINT64_MAX), Json(0x1p63), Json(0x1p62)}) {
    cluster["device"]["memory"] = memory;
    EXPECT_CONTAINS(message_of(parse), "device.memory: ");
  }
  cluster["device"]["memory"] = std::int64_t{1} << 61;
  EXPECT_EQ(parse().device.memory, std::int64_t{1} << 61);
}

// What is written of a strategy must be one again: its micro batch has a limit of its own.
TEST(HostileNumbers, ABatchThatFollowsHasTheLimitOfOneThatIsWritten) {
  EXPECT_CONTAINS(rejection(R"({"train_batch_size": 1000000000000})"),
                  "train_batch_size: 1000000000000 makes train_micro_batch_size_per_gpu "
                  "250000000000 with 4 ranks, above 1000000; lower it");
  EXPECT_CONTAINS(
      rejection(R"({"train_batch_size": 400000000000, "train_micro_batch_size_per_gpu": 1})"),
      "gradient_accumulation_steps 100000000000");
  const ImportedStrategy most = import_text(R"({"train_batch_size": 4000000})");
  EXPECT_EQ(most.strategy.micro_batch, 1'000'000);
  EXPECT_NO_THROW(import_text(to_text(strategy_to_json(most.strategy))));
}

}  // namespace
}  // namespace zl
