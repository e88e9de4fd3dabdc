// The three sizes of a batch and the ranks: batch = micro-batch * accumulation * ranks.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/scenarios/importing.h"

namespace zl {
namespace {

TEST(ImportDeepSpeed, BatchTriangle) {
  struct Case {
    const char* text;
    std::int64_t micro, accumulation;
  };
  for (const Case& c :
       {Case{R"({"train_batch_size": 24, "train_micro_batch_size_per_gpu": 2,
                                 "gradient_accumulation_steps": 3})",
             2, 3},
        Case{R"({"train_batch_size": 24, "train_micro_batch_size_per_gpu": 2})", 2, 3},
        Case{R"({"train_batch_size": 24, "gradient_accumulation_steps": 3})", 2, 3},
        Case{R"({"train_micro_batch_size_per_gpu": 2, "gradient_accumulation_steps": 3})", 2, 3},
        Case{R"({"train_batch_size": 24})", 6, 1},
        Case{R"({"train_micro_batch_size_per_gpu": 2})", 2, 1},
        Case{R"({"train_batch_size": 24, "train_micro_batch_size_per_gpu": "auto"})", 6, 1},
        Case{R"({"train_batch_size": "auto"})", 1, 1},
        Case{R"({"gradient_accumulation_steps": 3, "train_batch_size": "auto"})", 1, 3}}) {
    const Strategy s = import_text(c.text).strategy;
    EXPECT_EQ(s.micro_batch, c.micro) << c.text;
    EXPECT_EQ(s.gradient_accumulation, c.accumulation) << c.text;
  }
}

TEST(ImportDeepSpeed, AMissingBatchIsTheRunsToGive) {
  const std::string text = R"({"gradient_accumulation_steps": 3})";
  const ImportedStrategy imported = import_text(text);
  EXPECT_EQ(imported.strategy.micro_batch, 1);
  EXPECT_EQ(imported.strategy.gradient_accumulation, 3);
  EXPECT_EQ(imported.warnings,
            std::vector<std::string>{"strategy.train_micro_batch_size_per_gpu: the file gives no "
                                     "batch; 1 unless the run gives one (--micro-batch)"});
  const ImportedStrategy given = import_text(text, {.ranks = 4, .micro_batch = 8});
  EXPECT_EQ(given.strategy.micro_batch, 8);
  EXPECT_TRUE(given.warnings.empty());
  EXPECT_TRUE(import_text(R"({"train_batch_size": "auto"})").warnings.empty());
}

// Where nothing runs, the three sizes of a file say of how many ranks it is.
TEST(ImportDeepSpeed, TheBatchImpliesTheRanks) {
  const std::string text = R"({"train_batch_size": 256, "train_micro_batch_size_per_gpu": 8,
                               "gradient_accumulation_steps": 2})";
  const ImportedStrategy inferred = import_text(text, {.infer_ranks = true});
  EXPECT_EQ(inferred.ranks, 16);
  EXPECT_EQ(inferred.strategy.micro_batch, 8);
  EXPECT_EQ(effect(inferred, "train_batch_size").why, "as written, a batch of 16 ranks");
  EXPECT_CONTAINS(rejection(text, {.ranks = 4}), "; the file is one for 16 ranks");
  EXPECT_CONTAINS(rejection(R"({"train_batch_size": 20, "train_micro_batch_size_per_gpu": 8,
                                "gradient_accumulation_steps": 1})",
                            {.infer_ranks = true}),
                  "20 is not micro batch 8 * accumulation 1 * ranks 1 = 8");
  EXPECT_EQ(import_text(R"({"train_batch_size": 24})", {.infer_ranks = true}).ranks, 1);
}

TEST(ImportDeepSpeed, BatchTriangleErrorsSolveTheEquation) {
  const std::string message =
      rejection(R"({"train_batch_size": 16, "gradient_accumulation_steps": 4})", {3});
  EXPECT_CONTAINS(
      message,
      "strategy.train_batch_size: 16 is not micro batch 1 * accumulation 4 * ranks 3 = 12");
  EXPECT_CONTAINS(message, "12 (micro batch 1, accumulation 4)");
  EXPECT_CONTAINS(message, "24 (micro batch 2, accumulation 4)");
  EXPECT_CONTAINS(rejection(R"({"train_batch_size": 2})"), "4 (micro batch 1, accumulation 1)");
  EXPECT_CONTAINS(rejection(R"({"train_batch_size": 10, "train_micro_batch_size_per_gpu": 2})"),
                  "8 (micro batch 2, accumulation 1) or 16 (micro batch 2, accumulation 2)");
  EXPECT_CONTAINS(rejection(R"({"train_batch_size": 16, "train_micro_batch_size_per_gpu": 2,
                               "gradient_accumulation_steps": 4})"),
                  "32 (micro batch 2, accumulation 4) or 16 (micro batch 2, accumulation 2)");
  EXPECT_CONTAINS(rejection(R"({"train_batch_size": 0})"), "0 is not at least 1");
}

// Every solution that an error prints must itself import.
TEST(ImportDeepSpeed, PrintedBatchSolutionsAreValid) {
  for (std::int64_t ranks : {1, 2, 3, 5, 8}) {
    for (std::int64_t total = 1; total <= 40; ++total) {
      for (std::int64_t micro : {0, 1, 3}) {
        nlohmann::ordered_json document = {{"train_batch_size", total}, {"steps_per_print", 1}};
        if (micro) document["train_micro_batch_size_per_gpu"] = micro;
        const ImportedStrategy shown = inspect_deepspeed(document.dump(), "f", {ranks});
        if (shown.rejections.empty()) {
          EXPECT_EQ(shown.strategy.micro_batch * shown.strategy.gradient_accumulation * ranks,
                    total);
          continue;
        }
        const std::string text = shown.rejections.front();
        const std::size_t at = text.find("Nearest valid: ") + 15;
        document["train_batch_size"] = std::stoll(text.substr(at));
        EXPECT_NO_THROW(import_text(document.dump(), {ranks})) << text;
      }
    }
  }
}

TEST(ImportDeepSpeed, RunBatchOverridesTheFile) {
  const Strategy s = import_text(R"({"train_batch_size": 16, "gradient_accumulation_steps": 4})",
                                 {4, nullptr, {}, 3, 2})
                         .strategy;
  EXPECT_EQ(s.micro_batch, 3);
  EXPECT_EQ(s.gradient_accumulation, 2);
  EXPECT_EQ(import_text(R"({"train_batch_size": 16})", {4, nullptr, {}, 0, 2}).strategy.micro_batch,
            2);
}

}  // namespace
}  // namespace zl
