// x-zerolab.parallel: what it says, what batches it counts over, and what cannot be.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "scenarios/files/scenario.h"
#include "scenarios/files/strategy_json.h"
#include "tests/scenarios/importing.h"

namespace zl {
namespace {

std::string parallel(const std::string& section, int accumulation = 8) {
  return R"({"train_micro_batch_size_per_gpu": 2, "gradient_accumulation_steps": )" +
         std::to_string(accumulation) + R"(, "x-zerolab": {"parallel": {)" + section + "}}}";
}

TEST(ImportParallel, ReadsAPipelineAndCountsBatchesOverDataRanks) {
  const ImportContext eight{8};
  const Strategy s =
      import_text(parallel(R"("pipeline": 4, "virtual_stages": 2, "schedule": "interleaved",
                              "layers_per_stage": [1, 2, 1, 1, 1, 1, 1, 4])"),
                  eight)
          .strategy;
  EXPECT_EQ(s.pipeline, (PipelineConfig{.ranks = 4,
                                        .virtual_stages = 2,
                                        .schedule = PipelineKind::interleaved,
                                        .layers_per_stage = {1, 2, 1, 1, 1, 1, 1, 4}}));
  // 2 data-parallel ranks: 64 = micro batch 2 * accumulation 16 * 2.
  const Strategy of_total = import_text(R"({"train_batch_size": 64,
      "train_micro_batch_size_per_gpu": 2, "x-zerolab": {"parallel": {"pipeline": 4}}})",
                                        eight)
                                .strategy;
  EXPECT_EQ(of_total.gradient_accumulation, 16);
  EXPECT_EQ(of_total.pipeline, (PipelineConfig{.ranks = 4}));
  Scenario scenario;
  scenario.run.ranks = 8;
  scenario.run.sequence_length = 100;
  EXPECT_EQ(tokens_per_step(scenario, of_total), 64 * 100);
}

TEST(ImportParallel, ReadsATensorGroup) {
  const ImportContext eight{8};
  const Strategy s = import_text(parallel(R"("tensor": 2, "sequence_parallel": true,
                                             "pipeline": 2)"),
                                 eight)
                         .strategy;
  EXPECT_EQ(s.tensor, (TensorConfig{.ranks = 2, .sequence_parallel = true}));
  EXPECT_EQ(import_text(to_text(strategy_to_json(s)), eight).strategy.tensor, s.tensor);
  // 2 data-parallel ranks beside 2 x 2: 64 = micro batch 2 * accumulation 16 * 2.
  const Strategy autotp = import_text(R"({"train_batch_size": 64,
      "train_micro_batch_size_per_gpu": 2, "tensor_parallel": {"autotp_size": 4}})",
                                      eight)
                              .strategy;
  EXPECT_EQ(autotp.tensor, (TensorConfig{.ranks = 4}));
  EXPECT_EQ(autotp.gradient_accumulation, 16);
}

TEST(ImportParallel, ReadsTheOverlapOfTensorGroups) {
  const ImportContext eight{8};
  const auto overlaps = [&](const std::string& text) {
    return import_text(text, eight).strategy.tensor.overlap;
  };
  EXPECT_TRUE(overlaps(R"({"tensor_parallel": {"autotp_size": 4, "tp_overlap_comm": true}})"));
  EXPECT_FALSE(overlaps(R"({"tensor_parallel": {"autotp_size": 4, "tp_overlap_comm": false}})"));
  EXPECT_TRUE(overlaps(parallel(R"("tensor": 2, "tensor_overlap": true)")));
  const auto both = [&](const char* own, const char* autotp) {
    return import_text(std::string(R"({"tensor_parallel": {"tp_overlap_comm": )") + autotp +
                           R"(}, "x-zerolab": {"parallel": {"tensor": 2, "tensor_overlap": )" +
                           own + "}}}",
                       eight);
  };
  EXPECT_TRUE(both("true", "true").strategy.tensor.overlap);
  for (const bool own : {false, true}) {
    const std::string torn =
        message_of([&] { own ? both("true", "false") : both("false", "true"); });
    EXPECT_CONTAINS(torn, "contradicts x-zerolab.parallel.tensor_overlap");
  }
  const ImportedStrategy alone =
      import_text(with(R"("tensor_parallel": {"tp_overlap_comm": true})"), eight);
  EXPECT_EQ(alone.strategy.tensor, TensorConfig());
  ASSERT_FALSE(alone.warnings.empty());
  EXPECT_EQ(alone.warnings.front(),
            "strategy.tensor_parallel.tp_overlap_comm: no effect here: there is no tensor group");
}

TEST(ImportParallel, ReadsCopiesOfShards) {
  const ImportContext eight{8};
  const char* stage3 = R"({"zero_optimization": {"stage": 3, "mics_shard_size": 2}})";
  EXPECT_EQ(import_text(stage3, eight).strategy.zero.replicas, 4);
  const Strategy s = import_text(R"({"zero_optimization": {"stage": 2},
      "x-zerolab": {"parallel": {"replicate": 2, "tensor": 2}}})",
                                 eight)
                         .strategy;
  EXPECT_EQ(s.zero.replicas, 2);
  EXPECT_EQ(import_text(to_text(strategy_to_json(s)), eight).strategy.zero.replicas, 2);
  EXPECT_EQ(mesh_of(s, 8), (Mesh{.tensor = 2, .shard = 2, .replicate = 2}));
}

TEST(ImportParallel, ReadsASecondaryPartition) {
  const Strategy s =
      import_text(R"({"zero_optimization": {"stage": 3, "zero_hpz_partition_size": 4}})",
                  ImportContext{8})
          .strategy;
  EXPECT_EQ(s.zero.secondary_partition, 4);
  EXPECT_EQ(
      import_text(to_text(strategy_to_json(s)), ImportContext{8}).strategy.zero.secondary_partition,
      4);
  EXPECT_EQ(mesh_of(s, 8), (Mesh{.shard = 8, .secondary = 4}));
  EXPECT_CONTAINS(
      rejection(R"({"zero_optimization": {"stage": 3, "zero_hpz_partition_size": 3}})"),
      "zero_optimization.zero_hpz_partition_size: 3 does not divide the 4 data-parallel ranks; "
      "use 2 or 4");
  EXPECT_CONTAINS(
      rejection(R"({"zero_optimization": {"stage": 2, "zero_hpz_partition_size": 2}})"),
      "zero_optimization.zero_hpz_partition_size: needs stage 3, which gathers weights, not 2");
  EXPECT_CONTAINS(rejection(R"({"zero_optimization": {"stage": 3, "zero_hpz_partition_size": 2,
                                "mics_shard_size": 2}})"),
                  "does not go with copies of shards");
}

TEST(ImportParallel, WithoutASectionThereIsNoPipelineAndNoneIsWritten) {
  const Strategy s = import_text(with(R"("zero_optimization": {"stage": 1})")).strategy;
  EXPECT_EQ(s.pipeline, PipelineConfig{});
  EXPECT_FALSE(strategy_to_json(s).at("x-zerolab").contains("parallel"));
}

TEST(ImportParallel, NamesWhatCannotBe) {
  EXPECT_CONTAINS(rejection(parallel(R"("pipeline": 3)")),
                  "x-zerolab.parallel.pipeline: 3 does not divide 4 ranks; use --ranks 3 or 6");
  EXPECT_CONTAINS(rejection(parallel(R"("pipeline": 8)")),
                  "does not divide 4 ranks; use --ranks 8");
  EXPECT_CONTAINS(rejection(parallel(R"("pipeline": 2, "schedule": "1F1B")")),
                  "\"1F1B\" is not one of gpipe, breadth-first, 1f1b, interleaved, zb-h1");
  EXPECT_CONTAINS(rejection(parallel(R"("pipeline": 4, "virtual_stages": 2,
                                        "schedule": "interleaved")",
                                     3)),
                  "use at least 4 micro-batches");
  EXPECT_CONTAINS(rejection(parallel(R"("pipeline": 2, "virtual_stages": 2)")),
                  "1f1b has one stage a rank, parallel.virtual_stages is 2");
  EXPECT_CONTAINS(rejection(parallel(R"("pipeline": 2, "layers_per_stage": [1, "two"])")),
                  "\"two\" is not a number of layers");
  EXPECT_CONTAINS(rejection(parallel(R"("pipeline": 2, "virtual_stages": 3, "schedule": "zb-v")")),
                  "zb-v needs 2 virtual stages, parallel.virtual_stages is 3; set it to 2");
  EXPECT_CONTAINS(rejection(parallel(R"("pipeline": 4, "virtual_stages": 2,
                                        "schedule": "interleaved-zb")",
                                     6)),
                  "needs a multiple of 4 micro-batches, there are 6; use 4 or 8");
  EXPECT_CONTAINS(rejection(parallel(R"("pipeline": 2, "layers_per_stage": "time")")),
                  "\"time\" is not one of even, units, parameters, cost, nor a list of layers");
  EXPECT_CONTAINS(rejection(parallel(R"("pipelines": 2)")), "parallel.pipeline");
  EXPECT_CONTAINS(rejection(parallel(R"("tensor": 2, "pipeline": 4)")),
                  "x-zerolab.parallel.tensor: tensor 2 x pipeline 4 does not divide 4 ranks; use "
                  "--ranks 8");
  EXPECT_CONTAINS(
      rejection(R"({"zero_optimization": {"stage": 1},
                                "x-zerolab": {"parallel": {"replicate": 3}}})"),
      "x-zerolab.parallel.replicate: 3 does not divide the 4 data-parallel ranks; use 2 or 4");
  EXPECT_CONTAINS(rejection(R"({"zero_optimization": {"stage": 3, "mics_shard_size": 3}})"),
                  "zero_optimization.mics_shard_size: 3 does not divide the 4 data-parallel ranks");
  EXPECT_CONTAINS(rejection(R"({"x-zerolab": {"parallel": {"replicate": 2}}})"),
                  "parallel.replicate: copies of shards need ZeRO stage 1, 2 or 3, not 0");
  EXPECT_CONTAINS(rejection(R"({"tensor_parallel": {"autotp_size": 2},
                                "x-zerolab": {"parallel": {"tensor": 4}}})"),
                  "tensor_parallel.autotp_size: 2 contradicts x-zerolab.parallel.tensor, 4");
  EXPECT_CONTAINS(rejection(R"({"optimizer": {"type": "Lamb"},
                                "x-zerolab": {"parallel": {"tensor": 2}}})"),
                  "optimizer.type: LAMB and the one-bit optimizers");
}

TEST(ImportParallel, SplitsLayersByNameAndKeepsTiedGradientsApart) {
  for (const LayerSplit split :
       {LayerSplit::even, LayerSplit::units, LayerSplit::parameters, LayerSplit::cost}) {
    const Strategy s = import_text(parallel(std::string(R"("pipeline": 2, "layers_per_stage": ")") +
                                            name_of(split) + "\""))
                           .strategy;
    EXPECT_EQ(s.pipeline, (PipelineConfig{.ranks = 2, .split = split}));
    EXPECT_EQ(import_text(strategy_to_json(s).dump()).strategy.pipeline, s.pipeline);
  }
  const auto tied = [](const char* value) {
    return with(std::string(R"("x-zerolab": {"tied_gradient": ")") + value + "\"}");
  };
  const Strategy apart = import_text(tied("separate")).strategy;
  EXPECT_TRUE(apart.separate_tied_gradient);
  EXPECT_TRUE(import_text(strategy_to_json(apart).dump()).strategy.separate_tied_gradient);
  EXPECT_FALSE(import_text(tied("together")).strategy.separate_tied_gradient);
  EXPECT_CONTAINS(rejection(tied("apart")), "x-zerolab.tied_gradient");
}

TEST(ImportParallel, SaysWhatOtherProgramsWouldNotRun) {
  const auto why = [](const std::string& zero, const std::string& schedule, const char* key) {
    return effect(
               import_text(R"({"train_micro_batch_size_per_gpu": 1,
                                  "gradient_accumulation_steps": 4,
                                  "zero_optimization": {"stage": )" +
                           zero + R"(}, "x-zerolab": {"parallel": {"pipeline": 2, "schedule": ")" +
                           schedule + "\"}}}"),
               key)
        .why;
  };
  const char* pipeline = "x-zerolab.parallel.pipeline";
  const char* schedule = "x-zerolab.parallel.schedule";
  EXPECT_EQ(why("1", "1f1b", pipeline), "");
  EXPECT_EQ(why("1", "1f1b", schedule), "");
  EXPECT_CONTAINS(why("2", "1f1b", pipeline), "DeepSpeed refuses ZeRO-2 and 3 under a pipeline");
  EXPECT_CONTAINS(why("3", "1f1b", pipeline), "every micro-batch reduces and gathers");
  EXPECT_CONTAINS(why("1", "zb-h1", schedule), "torchtitan has it, DeepSpeed and Megatron-LM do");
  EXPECT_CONTAINS(why("1", "zb-h2", schedule), "sail-sg's zero-bubble has it");
}

}  // namespace
}  // namespace zl
