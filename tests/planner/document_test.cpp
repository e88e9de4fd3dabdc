#include "scenarios/planner/document.h"

#include <gtest/gtest.h>

#include "core/base/error.h"
#include "scenarios/files/load_scenario.h"

namespace zl {
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

}  // namespace
}  // namespace zl
