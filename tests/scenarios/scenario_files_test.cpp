// Files and folders that a scenario is read from or names.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "scenarios/files/load_scenario.h"
#include "scenarios/files/model_file.h"
#include "tests/scenarios/message.h"
#include "tests/temp_folder.h"

namespace zl {
namespace {

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

}  // namespace
}  // namespace zl
