// Configuration files as people write them: what is read, and that being written again changes no
// run. data/deepspeed_files.jsonl has one a line, of the keys that public files use most; "x-wrong"
// marks those that DeepSpeed itself refuses.
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "scenarios/files/model_file.h"
#include "scenarios/files/strategy_json.h"
#include "tests/scenarios/importing.h"

namespace zl {
namespace {

std::vector<std::string> realistic_files() {
  std::ifstream file(std::string(ZL_SOURCE_DIR) + "/tests/scenarios/data/deepspeed_files.jsonl");
  std::vector<std::string> lines;
  for (std::string line; std::getline(file, line);) lines.push_back(line);
  return lines;
}

bool is_wrong(const std::string& text) { return Json::parse(text).contains("x-wrong"); }

TEST(DeepSpeedFiles, AllButTheWrongOnesAreRead) {
  std::size_t right = 0;
  for (const std::string& text : realistic_files()) {
    const ImportedStrategy imported = inspect_deepspeed(text, "f.json", {.infer_ranks = true});
    EXPECT_EQ(imported.rejections.empty(), !is_wrong(text))
        << text << "\n"
        << testing::PrintToString(imported.rejections);
    if (!is_wrong(text)) ++right;
  }
  EXPECT_EQ(right, 41u);
}

// "auto", types and batch sizes mean in the written file what they mean in the one that was read,
// on a cluster of bf16 devices, of fp16 devices, and on this machine.
TEST(DeepSpeedFiles, WrittenAgainTheyTrainTheSame) {
  const ModelConfig model = load_model("gpt2-124m");
  int compared = 0;
  for (const std::string& text : realistic_files()) {
    if (is_wrong(text)) continue;
    const ImportedStrategy read = import_text(text, {.infer_ranks = true});
    const std::string written = strategy_file_json(read, false).dump();
    for (const DType precision : {DType::bf16, DType::f16, DType::f32}) {
      const ImportContext run{
          .ranks = read.ranks, .model = &model, .steps = 100000, .default_precision = precision};
      const Strategy before = import_text(text, run).strategy;
      const Strategy after = import_text(written, run).strategy;
      EXPECT_EQ(strategy_to_json(before).dump(), strategy_to_json(after).dump()) << text;
      ++compared;
    }
  }
  EXPECT_EQ(compared, 41 * 3);
}

TEST(DeepSpeedFiles, AutoStaysAuto) {
  const std::string text = R"({"train_batch_size": "auto", "bf16": {"enabled": "auto"},
      "optimizer": {"type": "AdamW", "params": {"lr": "auto"}},
      "zero_optimization": {"stage": 3, "stage3_prefetch_bucket_size": "auto"}})";
  const ImportedStrategy open = import_text(text, {});
  EXPECT_EQ(effect(open, "bf16.enabled").effective, "\"auto\"");
  EXPECT_EQ(effect(open, "zero_optimization.stage3_prefetch_bucket_size").effective, "\"auto\"");
  const Json written = strategy_file_json(open, false);
  EXPECT_EQ(written["bf16"], Json({{"enabled", "auto"}}));
  EXPECT_EQ(written["train_batch_size"], "auto");
  EXPECT_EQ(written["optimizer"]["params"]["lr"], "auto");
  EXPECT_EQ(written["zero_optimization"]["prefetch_bucket_size"], "auto");
  EXPECT_FALSE(written.contains("fp16"));
  EXPECT_FALSE(written.contains("data_types"));
  EXPECT_FALSE(written.contains("train_micro_batch_size_per_gpu"));
  EXPECT_EQ(strategy_file_json(open, true)["train_micro_batch_size_per_gpu"], 1);
  const ImportedStrategy on_gpus = import_text(text, {.default_precision = DType::bf16});
  EXPECT_EQ(effect(on_gpus, "bf16.enabled").effective, "true");
  EXPECT_EQ(effect(on_gpus, "bf16.enabled").why, "the default on this cluster is bf16");
}

}  // namespace
}  // namespace zl
