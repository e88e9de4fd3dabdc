#include "gui/document.h"

#include <gtest/gtest.h>

#include "core/base/error.h"
#include "gui/command_line.h"
#include "scenarios/files/load_scenario.h"
#include "tests/gui/helpers.h"

namespace zl::gui {
namespace {

TEST(Document, ValuesAreSetTypedAndRemoved) {
  const Document document = Document::open("demo");
  EXPECT_EQ(document.get("model"), "gpt2-3m");
  EXPECT_EQ(document.get("run.ranks"), "4");
  EXPECT_EQ(document.get("run.precision"), "");
  const Document changed = document.with("run.ranks", "8").with("run.precision", "bf16");
  EXPECT_EQ(scenario_from_json(changed.text(), "t").run.ranks, 8);
  EXPECT_EQ(changed.get("run.precision"), "bf16");
  EXPECT_EQ(changed.with("run.ranks", "4").with("run.precision", ""), document);
  EXPECT_EQ(Document::differences(document, changed),
            (std::vector<std::string>{"run.ranks", "run.precision"}));
}

TEST(Document, WhatIsNoScenarioIsRefusedByName) {
  EXPECT_THROW(Document::parse("{\"modle\": 1}", "x"), Error);
  EXPECT_THROW(Document::parse("{", "x"), Error);
  try {
    Document::open("dmeo");
    FAIL();
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("demo"), std::string::npos) << error.what();
  }
}

// Whatever "Copy as command" prints means the same scenario.
TEST(CommandLine, ReproducesTheScenario) {
  const Document demo = Document::open("demo");
  EXPECT_EQ(command_line(demo), "zerolab run demo --backend sim");
  const std::string edited = command_line(demo.with("run.micro_batch", "4"));
  EXPECT_TRUE(edited.starts_with("zerolab run --model gpt2-3m")) << edited;
  EXPECT_NE(edited.find("--micro-batch 4"), std::string::npos) << edited;
  const std::string eager =
      command_line(demo.with("cluster", "8xa100-80").with("run.stack", "pytorch-eager"));
  EXPECT_NE(eager.find("--stack pytorch-eager"), std::string::npos) << eager;
  const std::string inlined = command_line(demo.with("model", R"({"family": "gpt2", "layers": 1,
      "hidden": 32, "heads": 2, "vocab": 256, "max_sequence": 64})"));
  EXPECT_TRUE(inlined.starts_with("cat > scenario.json")) << inlined;
}

}  // namespace
}  // namespace zl::gui
