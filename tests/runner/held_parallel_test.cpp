// What Megatron, DeepSpeed and llm.c hold, in numbers that their authors state: activations of a
// block (Korthikanti et al. 2022), bytes of a parameter, micro-batches in flight.
#include <gtest/gtest.h>

#include <numeric>

#include "core/pipeline/pipeline_plan.h"
#include "scenarios/files/clusters.h"
#include "simulator/held_block.h"
#include "simulator/held_memory.h"

namespace zl::sim {
namespace {

constexpr std::int64_t kSequence = 1024, kHidden = 512, kHeads = 8;

ModelConfig gpt(double dropout) {
  ModelConfig model;
  model.layers = 8;
  model.hidden = kHidden;
  model.heads = kHeads;
  model.vocab = 1024;
  model.dropout = model.attention_dropout = dropout;
  model.complete();
  return model;
}

SoftwareMemory memory_of(const char* software) { return load_software(software).held.value(); }

Strategy strategy_of(int stage, int tensor = 1, int pipeline = 1) {
  Strategy strategy;
  strategy.zero.stage = stage;
  strategy.precision.compute_dtype = DType::bf16;
  strategy.tensor.ranks = tensor;
  strategy.pipeline.ranks = pipeline;
  strategy.gradient_accumulation = 16;
  return strategy;
}

std::int64_t bytes_of(const HeldMemory& held, std::string_view what) {
  return std::accumulate(held.parts.begin(), held.parts.end(), std::int64_t{0},
                         [&](std::int64_t sum, const HeldPart& part) {
                           return sum + (part.what == what ? part.bytes : 0);
                         });
}

std::int64_t block_of(const char* software, const TensorConfig& tensor, double dropout) {
  const ModelConfig model = gpt(dropout);
  const SoftwareMemory memory = memory_of(software);
  return block_bytes({model, memory, element_bytes(DType::bf16, memory), tensor, kSequence}, {})
      .all();
}

// Statistics of the two norms, which the formulas leave out; logarithms of the heads' sums besides.
constexpr std::int64_t kStatistics = 2 * 2 * 4;

TEST(HeldParallel, ABlockKeepsWhatKorthikantiCount) {
  const std::int64_t h = kHidden, scores = 5 * kHeads * kSequence;
  EXPECT_EQ(block_of("megatron-deepspeed-2021", {}, 0.1), 34 * h + scores + kStatistics);
  EXPECT_EQ(block_of("megatron-deepspeed-2021", {.ranks = 4}, 0.1),
            10 * h + (24 * h + scores) / 4 + kStatistics);
  EXPECT_EQ(block_of("megatron-deepspeed-2021", {.ranks = 4, .sequence_parallel = true}, 0.1),
            (34 * h + scores + kStatistics) / 4);
  EXPECT_EQ(block_of("megatron-core", {}, 0.1), 34 * h + kStatistics + 4 * kHeads);
  EXPECT_EQ(block_of("megatron-core", {}, 0), 32 * h + kStatistics + 4 * kHeads);
}

TEST(HeldParallel, SelectiveRecomputationDropsTheScores) {
  const ModelConfig model = gpt(0.1);
  const SoftwareMemory memory = memory_of("megatron-deepspeed-2021");
  const BlockBytes block =
      block_bytes({model, memory, element_bytes(DType::bf16, memory), {}, kSequence},
                  {.mode = RecomputeMode::selective, .attention = true});
  EXPECT_EQ(block.selective, 34 * kHidden + kStatistics);
}

TEST(HeldParallel, StatesAreThoseThatTheSoftwareSays) {
  const ModelConfig model = gpt(0);
  const std::int64_t p = model.parameters();
  const auto held = [&](const char* software, int stage) {
    return held_memory(model, strategy_of(stage), 4, kSequence, memory_of(software));
  };
  const auto states = [&](const char* software, int stage) {
    const TaggedBytes peak = held(software, stage).peak();
    return peak.tag[static_cast<std::size_t>(MemoryTag::parameter)] +
           peak.tag[static_cast<std::size_t>(MemoryTag::gradient)] +
           peak.tag[static_cast<std::size_t>(MemoryTag::optimizer)];
  };
  EXPECT_EQ(states("megatron-core", 0), 18 * p);
  EXPECT_EQ(states("megatron-core", 1), 6 * p + 12 * p / 4);
  EXPECT_EQ(states("llm.c", 1), 4 * p + 12 * p / 4);
  EXPECT_EQ(bytes_of(held("deepspeed", 1), "weights"), 2 * p);
  EXPECT_EQ(bytes_of(held("deepspeed", 2), "gradients"), 2 * p / 4);
  EXPECT_EQ(bytes_of(held("deepspeed", 3), "weights"), 2 * p / 4);
  EXPECT_EQ(bytes_of(held("deepspeed", 2), "bucket of gradients"), 2 * 500'000'000);
}

TEST(HeldParallel, OffloadLeavesWhatTheDeviceNeeds) {
  const ModelConfig model = gpt(0);
  Strategy strategy = strategy_of(3);
  const SoftwareMemory memory = memory_of("deepspeed");
  const HeldMemory here = held_memory(model, strategy, 4, kSequence, memory);
  strategy.offload.optimizer = Tier::cpu;
  const HeldMemory away = held_memory(model, strategy, 4, kSequence, memory);
  EXPECT_GT(bytes_of(here, "moments"), 0);
  EXPECT_EQ(bytes_of(away, "moments") + bytes_of(away, "gradients"), 0);
  EXPECT_EQ(bytes_of(away, "weights"), bytes_of(here, "weights"));
  strategy.offload.parameters = Tier::cpu;
  EXPECT_EQ(bytes_of(held_memory(model, strategy, 4, kSequence, memory), "weights"), 0);
  EXPECT_EQ(why_not_held(model, strategy, memory_of("torch-fsdp2")), "offload");
}

// As many micro-batches as the list that the program runs has in flight, the one that goes backward
// beside them.
TEST(HeldParallel, MicroBatchesInFlightAreThoseOfTheProgramsList) {
  const ModelConfig model = gpt(0.1);
  const SoftwareMemory memory = memory_of("megatron-core");
  for (const PipelineKind kind : {PipelineKind::one_f_one_b, PipelineKind::gpipe}) {
    Strategy strategy = strategy_of(0, 1, 4);
    strategy.pipeline.schedule = kind;
    const auto plan = plan_pipeline(strategy.pipeline, strategy.gradient_accumulation);
    const auto ranks = held_by_rank(model, strategy, 4, kSequence, memory);
    ASSERT_EQ(ranks.size(), 4U);
    // In the middle nothing but blocks is kept.
    const std::int64_t second = bytes_of(ranks[1], "other micro-batches");
    const std::int64_t third = bytes_of(ranks[2], "other micro-batches");
    EXPECT_EQ(second * (plan->schedules[2].in_flight() - 1),
              third * (plan->schedules[1].in_flight() - 1));
    EXPECT_GT(third, 0);
  }
}

TEST(HeldParallel, BackwardsInHalvesKeepBothFactorsOfTheProductsOnly) {
  const ModelConfig model = gpt(0.1);
  const SoftwareMemory memory = memory_of("megatron-deepspeed-2021");
  Strategy strategy = strategy_of(0, 1, 4);
  const auto fullest = [&] { return held_memory(model, strategy, 4, kSequence, memory).total(); };
  const std::int64_t plain = fullest();
  strategy.pipeline.schedule = PipelineKind::zb_h2;
  EXPECT_GT(fullest(), plain);
  strategy.pipeline.schedule = PipelineKind::gpipe;
  EXPECT_GT(fullest(), plain);
}

TEST(HeldParallel, TheFullestRankIsWhatMustFit) {
  const ModelConfig model = gpt(0.1);
  const SoftwareMemory memory = memory_of("megatron-core");
  const Strategy strategy = strategy_of(0, 2, 4);
  const auto ranks = held_by_rank(model, strategy, 8, kSequence, memory);
  const HeldMemory fullest = held_memory(model, strategy, 8, kSequence, memory);
  for (const HeldMemory& each : ranks) EXPECT_LE(each.device, fullest.device);
  EXPECT_EQ(ranks[static_cast<std::size_t>(fullest.rank)].device, fullest.device);
}

TEST(HeldParallel, WhatNoRunSupportsIsKnown) {
  const SoftwareMemory memory = memory_of("megatron-core");
  Strategy strategy = strategy_of(1);
  EXPECT_TRUE(is_supported(strategy, memory));
  strategy.recompute = {.mode = RecomputeMode::selective, .attention = true};
  EXPECT_FALSE(is_supported(strategy, memory));
  EXPECT_GT(memory.unsupported_error, 2 * memory.error);
  EXPECT_FALSE(is_supported(strategy_of(1), memory_of("torch-ddp")));
}

}  // namespace
}  // namespace zl::sim
