#include "scenarios/report/show.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "scenarios/deepspeed/import.h"
#include "scenarios/files/model_file.h"

namespace zl {
namespace {

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
