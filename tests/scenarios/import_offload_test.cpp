// The offload sections of DeepSpeed files: what becomes of every key, and what is refused by name.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "scenarios/files/strategy_json.h"
#include "tests/scenarios/importing.h"

namespace zl {
namespace {

ImportedStrategy import_zero(const std::string& zero, const std::string& rest = "") {
  ImportContext context;
  context.ranks = 2;
  return import_deepspeed(
      "{\"train_micro_batch_size_per_gpu\": 1, \"zero_optimization\": " + zero + rest + "}",
      "offload.json", context);
}

constexpr auto kNvme = R"({"stage": 3, "sub_group_size": 1000,
    "offload_optimizer": {"device": "nvme", "nvme_path": "/nvme", "buffer_count": 4,
                          "pipeline_read": true, "pipeline_write": true, "ratio": 0.5},
    "offload_param": {"device": "nvme", "nvme_path": "/nvme", "buffer_count": 3,
                      "buffer_size": 5000, "max_in_cpu": 7}})";

TEST(ImportOffload, FillsEveryField) {
  const ImportedStrategy imported = import_zero(
      kNvme, R"(, "aio": {"block_size": 262144, "queue_depth": 32, "intra_op_parallelism": 2,
                         "single_submit": true, "overlap_events": false},
          "x-zerolab": {"recompute": "full"},
          "activation_checkpointing": {"cpu_checkpointing": true})");
  ASSERT_TRUE(imported.rejections.empty()) << imported.rejections.front();
  const OffloadConfig& o = imported.strategy.offload;
  EXPECT_EQ(o.optimizer, Tier::nvme);
  EXPECT_EQ(o.parameters, Tier::nvme);
  EXPECT_TRUE(o.activations);
  EXPECT_TRUE(o.pin_memory);
  EXPECT_EQ(o.nvme_path, "/nvme");
  EXPECT_EQ(o.sub_group_size, 1000);
  EXPECT_EQ(o.ratio, 0.5);
  EXPECT_TRUE(o.pipeline_read && o.pipeline_write);
  EXPECT_EQ(o.parameter_buffer_count, 3);
  EXPECT_EQ(o.parameter_buffer_size, 5000);
  EXPECT_EQ(o.max_in_cpu, 7);
  EXPECT_EQ(o.aio.block_size, 262144);
  EXPECT_EQ(o.aio.queue_depth, 32);
  EXPECT_EQ(o.aio.threads, 2);
  EXPECT_TRUE(o.aio.single_submit);
  EXPECT_FALSE(o.aio.overlap_events);
  // Pipelined AdamW needs two sets of three buffers.
  EXPECT_EQ(effect(imported, "zero_optimization.offload_optimizer.buffer_count").effective, "6");
}

TEST(ImportOffload, SurvivesBeingWrittenAsAStrategy) {
  const ImportedStrategy imported = import_zero(kNvme);
  const std::string text = strategy_to_json(imported.strategy).dump();
  const ImportedStrategy again = import_deepspeed(text, "again.json", {});
  EXPECT_EQ(strategy_to_json(again.strategy).dump(), text);
  EXPECT_EQ(again.strategy.offload.parameters, Tier::nvme);
}

TEST(ImportOffload, TakesTheOldSpellings) {
  const OffloadConfig two = import_zero(R"({"stage": 2, "cpu_offload": true,
      "cpu_offload_use_pin_memory": false})")
                                .strategy.offload;
  EXPECT_EQ(two.optimizer, Tier::cpu);
  EXPECT_FALSE(two.pin_memory);
  const OffloadConfig three =
      import_zero(R"({"stage": 3, "cpu_offload": true, "cpu_offload_params": true})")
          .strategy.offload;
  EXPECT_EQ(three.parameters, Tier::cpu);
  EXPECT_EQ(import_zero(R"({"stage": 2})").strategy.offload.any(), false);
}

// As in DeepSpeed what lacks what it needs is in vain, which is said.
TEST(ImportOffload, WhatHasNoUseIsSaidToHaveNoEffect) {
  struct Case {
    const char *zero, *rest, *key, *why;
  };
  for (const Case& c :
       {Case{R"({"stage": 0, "offload_optimizer": {"device": "cpu"}})", "",
             "zero_optimization.offload_optimizer.device",
             "offloading needs stage 1, 2 or 3, not 0"},
        Case{R"({"stage": 2, "offload_param": {"device": "cpu", "pin_memory": true}})", "",
             "zero_optimization.offload_param.device", "only stage 3 offloads weights, not 2"},
        Case{R"({"stage": 2})", R"(, "activation_checkpointing": {"cpu_checkpointing": true})",
             "activation_checkpointing.cpu_checkpointing",
             "there are no checkpointed block inputs to offload; recompute whole blocks "
             "(gradient_checkpointing: true)"}}) {
    const ImportedStrategy imported = import_zero(c.zero, c.rest);
    EXPECT_FALSE(imported.strategy.offload.any()) << c.key;
    EXPECT_EQ(effect(imported, c.key).why, std::string("no effect: ") + c.why);
    EXPECT_EQ(imported.warnings, std::vector<std::string>{std::string("strategy.") + c.key +
                                                          ": no effect here: " + c.why});
  }
  const ImportedStrategy weights = inspect_deepspeed(
      R"({"zero_optimization": {"stage": 3, "offload_param": {"device": "cpu"}}})", "f.json", {});
  ASSERT_EQ(weights.refusals.size(), 1u);
  EXPECT_CONTAINS(weights.refusals[0], "set offload_optimizer.device");
}

TEST(ImportOffload, RefusesByKeyValueAndFix) {
  const auto rejection = [](const std::string& zero, const std::string& rest = "") {
    const ImportedStrategy imported = inspect_deepspeed(
        "{\"train_micro_batch_size_per_gpu\": 1, \"zero_optimization\": " + zero + rest + "}",
        "offload.json", {});
    return imported.rejections.empty() ? std::string("accepted") : imported.rejections.front();
  };
  EXPECT_CONTAINS(rejection(R"({"stage": 2, "offload_optimizer": {"device": "nvme"}})"),
                  "nvme_path");
  EXPECT_CONTAINS(rejection(R"({"stage": 2, "offload_optimizer": {"device": "disk"}})"), "disk");
  EXPECT_CONTAINS(
      rejection(R"({"stage": 2, "offload_optimizer": {"device": "cpu", "ratio": 1.5}})"), "ratio");
  EXPECT_CONTAINS(rejection(kNvme, R"(, "aio": {"block_size": 5000})"), "aio.block_size: 5000");
  EXPECT_CONTAINS(rejection(R"({"stage": 2, "offload_optimizer": {"device": "cpu"}})",
                            R"(, "optimizer": {"type": "Lamb"})"),
                  "LAMB");
}

}  // namespace
}  // namespace zl
