// x-zerolab.parallel: what it says, what batches it counts over, and what cannot be.
#include <gtest/gtest.h>

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
                  "\"two\" is not a positive number of layers");
  EXPECT_CONTAINS(rejection(parallel(R"("pipeline": 2, "virtual_stages": 3, "schedule": "zb-v")")),
                  "zb-v needs 2 virtual stages, parallel.virtual_stages is 3; set it to 2");
  EXPECT_CONTAINS(rejection(parallel(R"("pipeline": 4, "virtual_stages": 2,
                                        "schedule": "interleaved-zb")",
                                     6)),
                  "needs a multiple of 4 micro-batches, there are 6; use 4 or 8");
  EXPECT_CONTAINS(rejection(parallel(R"("pipeline": 2, "layers_per_stage": "time")")),
                  "\"time\" is not one of even, parameters, cost, nor a list of layers");
  EXPECT_CONTAINS(rejection(parallel(R"("pipelines": 2)")), "parallel.pipeline");
}

TEST(ImportParallel, SplitsLayersByNameAndKeepsTiedGradientsApart) {
  for (const LayerSplit split : {LayerSplit::even, LayerSplit::parameters, LayerSplit::cost}) {
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
