#include "simulator/cluster/software_memory.h"

#include <gtest/gtest.h>

#include "core/base/error.h"
#include "simulator/cluster/software.h"

namespace zl::sim {
namespace {

const std::string kMemoryText = R"({"schema": 2, "name": "mine", "step_error": {"unsupported": 0.3},
  "memory": {"autocast": true, "stages": [0, 3], "gathers_from": 3, "model_parallel": true,
    "offloads": true, "vocab_multiple": 64, "flat_gradients": true,
    "reuses_gathered": true, "gradient_shards": true,
    "bytes_per_parameter": {"weight": 4, "gradient": 2, "master": 6, "moments": 8, "step_scratch": 1,
                            "norm_scratch": 9, "buckets": 5, "reduced": 3, "reduce_bucket": 7},
    "block": {"compiled": true, "rms_norm": "fused", "gelu": "ops", "repeats_heads": true,
              "kept_products": 3, "keeps_scores": true, "fused_activation": true, "attention_mask": true,
              "dummy_gradients": true},
    "bytes_per_logit": {"kept": 6, "scratch": 10, "chunks": 7},
    "device": {"workspace": "3GiB", "context": "1GiB", "library": "2GiB", "reserve": 1.25},
    "error": {"unsupported": 0.3,
              "supported": {"error": 0.07, "stages": [3], "recompute": ["none", "full"]}}}})";

std::string memory_message(const std::string& from, const std::string& to) {
  std::string text = kMemoryText;
  text.replace(text.find(from), from.size(), to);
  try {
    parse_software(text, "mine.json");
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::invalid);
    return error.what();
  }
  return "no error";
}

TEST(SoftwareMemory, ReadsEveryKey) {
  const SoftwareMemory memory = parse_software(kMemoryText, "mine.json").held.value();
  EXPECT_TRUE(memory.autocast);
  EXPECT_EQ(memory.stages, (std::vector<int>{0, 3}));
  EXPECT_EQ(memory.weight, 4);
  EXPECT_EQ(memory.gradient, 2);
  EXPECT_EQ(memory.moments, 8);
  EXPECT_EQ(memory.step_scratch, 1);
  EXPECT_EQ(memory.norm_scratch, 9);
  EXPECT_EQ(memory.buckets, 5);
  EXPECT_TRUE(memory.compiled);
  EXPECT_EQ(memory.rms_norm, Fusion::fused);
  EXPECT_EQ(memory.gelu, Fusion::ops);
  EXPECT_TRUE(memory.repeats_heads);
  EXPECT_EQ(memory.kept_products, 3);
  EXPECT_EQ(memory.logits_kept, 6);
  EXPECT_EQ(memory.logits_scratch, 10);
  EXPECT_EQ(memory.loss_chunks, 7);
  EXPECT_EQ(memory.context, std::int64_t{1} << 30);
  EXPECT_EQ(memory.library, std::int64_t{2} << 30);
  EXPECT_EQ(memory.reserve, 1.25);
  EXPECT_EQ(memory.workspace, std::int64_t{3} << 30);
  EXPECT_EQ(memory.error, 0.07);
  EXPECT_EQ(memory.unsupported_error, 0.3);
  EXPECT_EQ(memory.supported_stages, std::vector<int>{3});
  EXPECT_EQ(memory.supported_recompute,
            (std::vector<RecomputeMode>{RecomputeMode::none, RecomputeMode::full}));
}

TEST(SoftwareMemory, ReadsTheKeysOfModelParallelPrograms) {
  const SoftwareMemory memory = parse_software(kMemoryText, "mine.json").held.value();
  EXPECT_EQ(memory.gathers_from, 3);
  EXPECT_TRUE(memory.model_parallel);
  EXPECT_TRUE(memory.offloads);
  EXPECT_EQ(memory.vocab_multiple, 64);
  EXPECT_TRUE(memory.flat_gradients);
  EXPECT_TRUE(memory.reuses_gathered);
  EXPECT_TRUE(memory.gradient_shards);
  EXPECT_EQ(memory.master, 6);
  EXPECT_EQ(memory.reduced, 3);
  EXPECT_EQ(memory.reduce_bucket, 7);
  EXPECT_TRUE(memory.keeps_scores);
  EXPECT_TRUE(memory.fused_activation);
  EXPECT_TRUE(memory.attention_mask);
  EXPECT_TRUE(memory.dummy_gradients);
}

TEST(SoftwareMemory, ErrorsNameTheKeyAndTheValue) {
  EXPECT_EQ(memory_message("[0, 3]", "[0, 4]"),
            "mine.json: software.memory.stages: 4 is not one of 0, 1, 2, 3");
  EXPECT_EQ(memory_message("[0, 3]", "[]"),
            "mine.json: software.memory.stages: is not a list of ZeRO stages");
  EXPECT_EQ(memory_message("\"fused\"", "\"fast\""),
            "mine.json: software.memory.block.rms_norm: \"fast\" is not one of ops, fused");
  EXPECT_EQ(memory_message("\"chunks\": 7", "\"chunks\": 0"),
            "mine.json: software.memory.bytes_per_logit.chunks: 0 is not at least 1");
  EXPECT_EQ(memory_message("1.25", "0.9"),
            "mine.json: software.memory.device.reserve: is less than what is in use (1)");
  EXPECT_EQ(memory_message("[\"none\", \"full\"]", "[\"some\"]"),
            "mine.json: software.memory.error.supported.recompute: \"some\" is not one of none, "
            "selective, full");
  EXPECT_NE(memory_message("\"moments\": 8, ", "").find("bytes_per_parameter.moments: is missing"),
            std::string::npos);
  EXPECT_NE(memory_message("\"scratch\"", "\"scrach\"").find("memory.bytes_per_logit"),
            std::string::npos);
}

TEST(SoftwareMemory, AProfileMaySayNothingOfIt) {
  const Software software = parse_software(
      R"({"schema": 2, "name": "mine", "step_error": {"unsupported": 0.3}})", "mine.json");
  EXPECT_FALSE(software.held.has_value());
}

}  // namespace
}  // namespace zl::sim
