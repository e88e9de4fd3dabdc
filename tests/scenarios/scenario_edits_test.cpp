// What flags change in every strategy of a scenario.
#include <gtest/gtest.h>

#include "scenarios/deepspeed/import.h"
#include "scenarios/files/load_scenario.h"
#include "tests/scenarios/message.h"

namespace zl {
namespace {

TEST(Scenario, EditsAreOfEveryStrategy) {
  ScenarioOverrides o;
  o.strategies = {"zero-2", "zero-3"};
  o.edits = {.recompute = "full", .offload = "cpu", .lr = 1e-4};
  const Scenario scenario = load_scenario("gpt2-tiny", o);
  const Strategy &two = scenario.strategies[0].strategy, &three = scenario.strategies[1].strategy;
  EXPECT_EQ(two.name, "zero-2+recompute-full+offload-cpu+lr-0.0001");
  for (const Strategy* each : {&two, &three}) {
    EXPECT_EQ(each->recompute.mode, RecomputeMode::full);
    EXPECT_EQ(each->offload.optimizer, Tier::cpu);
    EXPECT_EQ(each->optimizer.lr, 1e-4);
  }
  EXPECT_EQ(two.offload.parameters, Tier::device) << "only stage 3 has weights to offload";
  EXPECT_EQ(three.offload.parameters, Tier::cpu);
  o.edits = {.recompute = {}, .offload = {}, .lr = 1e-3, .warmup = 30};
  const Strategy warm = load_scenario("gpt2-tiny", o).strategies[0].strategy;
  EXPECT_EQ(warm.name, "zero-2+lr-0.001+warmup-30");
  EXPECT_EQ(warm.schedule.kind, ScheduleKind::warmup_lr);
  EXPECT_EQ(warm.schedule.warmup_num_steps, 30);
  EXPECT_EQ(warm.schedule.warmup_max_lr, 1e-3) << "the optimizer's";
  EXPECT_FALSE(warm.schedule.warmup_log);
  o.edits = {.recompute = {}, .offload = "disk", .lr = {}};
  EXPECT_CONTAINS(message_of([&] { load_scenario("gpt2-tiny", o); }),
                  "offload: \"disk\" is not one of none, cpu, nvme");
}

TEST(Scenario, EditsCutEveryStrategyOverAPipeline) {
  ScenarioOverrides o;
  o.strategies = {"zero-1"};
  o.ranks = 8;
  o.gradient_accumulation = 8;
  o.edits.pipeline = 2;
  const Strategy plain = load_scenario("gpt2-tiny", o).strategies[0].strategy;
  EXPECT_EQ(plain.name, "zero-1+pp2");
  EXPECT_EQ(plain.pipeline, (PipelineConfig{.ranks = 2}));
  o.edits.virtual_stages = 2;
  const Strategy two = load_scenario("gpt2-tiny", o).strategies[0].strategy;
  EXPECT_EQ(two.name, "zero-1+pp2+v2");
  EXPECT_EQ(two.pipeline.schedule, PipelineKind::interleaved);
  o.edits.schedule = "breadth-first";
  o.edits.layers_per_stage = "1,1,1,1";
  const Strategy named = load_scenario("gpt2-tiny", o).strategies[0].strategy;
  EXPECT_EQ(named.name, "zero-1+pp2+v2+breadth-first+layers-1-1-1-1");
  EXPECT_EQ(named.pipeline, (PipelineConfig{.ranks = 2,
                                            .virtual_stages = 2,
                                            .schedule = PipelineKind::breadth_first,
                                            .layers_per_stage = {1, 1, 1, 1}}));
}

TEST(Scenario, EditsCutEveryStrategyOverATensorGroup) {
  ScenarioOverrides o;
  o.strategies = {"zero-1"};
  o.ranks = 8;
  o.edits.tensor = 4;
  o.edits.sequence_parallel = true;
  const Strategy s = load_scenario("gpt2-tiny", o).strategies[0].strategy;
  EXPECT_EQ(s.name, "zero-1+tp4+sp");
  EXPECT_EQ(s.tensor, (TensorConfig{.ranks = 4, .sequence_parallel = true}));
  o.edits.tensor_overlap = true;
  const Strategy overlapped = load_scenario("gpt2-tiny", o).strategies[0].strategy;
  EXPECT_EQ(overlapped.name, "zero-1+tp4+sp+tp-overlap");
  EXPECT_EQ(overlapped.tensor,
            (TensorConfig{.ranks = 4, .sequence_parallel = true, .overlap = true}));
  o.edits.sequence_parallel = o.edits.tensor_overlap = false;
  const Strategy neither = load_scenario("gpt2-tiny", o).strategies[0].strategy;
  EXPECT_EQ(neither.name, "zero-1+tp4+no-sp+no-tp-overlap");
  EXPECT_EQ(neither.tensor, (TensorConfig{.ranks = 4}));
}

// What a DeepSpeed file says of the group in its own words does not contradict the command line.
TEST(Scenario, EditsTakeThePlaceOfDeepSpeedsWords) {
  StrategyEdits edits;
  edits.tensor = 2;
  edits.tensor_overlap = true;
  const std::string text = edited_strategy(
      R"({"tensor_parallel": {"autotp_size": 4, "tp_overlap_comm": false}})", "ds.json", edits);
  const ImportedStrategy edited = import_deepspeed(text, "ds.json", ImportContext{8});
  EXPECT_TRUE(edited.rejections.empty()) << edited.rejections.front();
  EXPECT_EQ(edited.strategy.tensor, (TensorConfig{.ranks = 2, .overlap = true}));
}

TEST(Scenario, EditsSplitLayersByNameAndRefuseOthers) {
  ScenarioOverrides o;
  o.strategies = {"zero-1"};
  o.ranks = 4;
  o.edits.pipeline = 2;
  o.edits.layers_per_stage = "parameters";
  const Strategy s = load_scenario("gpt2-tiny", o).strategies[0].strategy;
  EXPECT_EQ(s.name, "zero-1+pp2+layers-parameters");
  EXPECT_EQ(s.pipeline, (PipelineConfig{.ranks = 2, .split = LayerSplit::parameters}));
  o.edits.layers_per_stage = "1,x";
  EXPECT_CONTAINS(message_of([&] { load_scenario("gpt2-tiny", o); }), "\"1,x\" is not one of even");
  o.edits.layers_per_stage = "3,-1";
  EXPECT_CONTAINS(message_of([&] { load_scenario("gpt2-tiny", o); }),
                  "-1 is not a number of layers");
}

}  // namespace
}  // namespace zl
