// Strategies that are files: two of one base name live together, one file is in a list once.
#include "scenarios/files/strategy_names.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "scenarios/files/load_scenario.h"
#include "tests/scenarios/message.h"
#include "tests/temp_folder.h"

namespace zl {
namespace {

namespace fs = std::filesystem;

class StrategyNames : public testing::Test {
 protected:
  StrategyNames() {
    for (const auto& [path, stage] : {std::pair{"a/d1/x.json", 1},
                                      {"a/d2/x.json", 2},
                                      {"b/d1/x.json", 3},
                                      {"a/zero-2.json", 0}}) {
      fs::create_directories((folder_ / path).parent_path());
      std::ofstream(folder_ / path) << R"({"train_batch_size": "auto", "zero_optimization":
          {"stage": )" << stage << "}}";
    }
  }

  std::string path(const std::string& name) const { return (folder_ / name).string(); }

  static std::vector<std::string> names(const std::vector<std::string>& strategies) {
    ScenarioOverrides overrides;
    overrides.strategies = strategies;
    std::vector<std::string> names;
    for (const ImportedStrategy& each : load_scenario("gpt2-tiny", overrides).strategies) {
      names.push_back(each.strategy.name + " stage " + std::to_string(each.strategy.zero.stage));
    }
    return names;
  }

  test::TempFolder folder_;
};

TEST_F(StrategyNames, FilesOfOneBaseNameAreNamedByTheirPaths) {
  using Names = std::vector<std::string>;
  EXPECT_EQ(names({path("a/d1/x.json")}), Names{"x stage 1"});
  EXPECT_EQ(names({path("a/d1/x.json"), "zero-1", path("a/d2/x.json")}),
            (Names{"x (d1) stage 1", "zero-1 stage 1", "x (d2) stage 2"}));
  EXPECT_EQ(names({path("a/d1/x.json"), path("b/d1/x.json")}),
            (Names{"x (a-d1) stage 1", "x (b-d1) stage 3"}));
  EXPECT_EQ(names({"zero-2", path("a/zero-2.json")}),
            (Names{"zero-2 stage 2", "zero-2 (a) stage 0"}));
  EXPECT_CONTAINS(message_of([this] {
                    names({path("a/d1/x.json"), path("a/d2/../d1/x.json")});
                  }),
                  "\"x\" occurs twice; set x-zerolab.name of one of them");
}

TEST_F(StrategyNames, AFileThatIsInAListIsReadAgain) {
  const std::vector<std::string> list{"zero-1", path("a/d1/x.json"), R"({"stage": 1})"};
  EXPECT_EQ(with_strategy_file(list, path("a/d2/../d1/x.json")), list);
  std::vector<std::string> longer = list;
  longer.push_back(path("a/d2/x.json"));
  EXPECT_EQ(with_strategy_file(list, path("a/d2/x.json")), longer);
}

}  // namespace
}  // namespace zl
