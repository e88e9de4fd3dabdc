// Plans as other software's configuration: round trips, and what cannot be said.
#include "scenarios/launch/launch.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <numeric>
#include <string>
#include <tuple>
#include <vector>

#include "core/base/error.h"
#include "scenarios/deepspeed/import.h"
#include "scenarios/files/strategy_file.h"
#include "scenarios/files/strategy_json.h"
#include "scenarios/launch/megatron.h"
#include "scenarios/launch/toml_document.h"
#include "scenarios/launch/torchtitan.h"
#include "scenarios/planner/plan_request.h"
#include "scenarios/planner/software_limits.h"
#include "tests/planner/says.h"

namespace zl {
namespace {

// What the planner makes plans for: the catalogue's states over every mesh of eight ranks.
class Launch : public ::testing::Test {
 protected:
  static PlanRequest request() {
    ScenarioOverrides overrides;
    overrides.cluster = "8xh100";
    overrides.sequence_length = 4096;
    PlanRequest request;
    request.scenario = plan_scenario("llama3-8b", overrides);
    request.global_batch = 64;
    return request;
  }

  struct Planned {
    sim::PlanPoint point;
    sim::PlanSpace::Division division;
    Strategy strategy;
  };

  static std::vector<Planned> plans(const PlanRequest& request, const sim::PlanSpace& space) {
    sim::PlanRules rules(request.scenario.model, space, request.scenario.run.sequence_length);
    std::vector<Planned> all;
    for (std::int64_t i = 0; i < space.size(); ++i) {
      const sim::PlanPoint point = space.at(i);
      const auto division = space.division(point);
      if (!division || !sim::is_canonical(space, point) || !rules.allows(point, *division))
        continue;
      const bool decides = space.recompute[point.recompute].mode == RecomputeMode::automatic;
      const std::int64_t stages = space.pipeline[point.pipeline] * space.chunks[point.chunks];
      const std::vector<std::int64_t> blocks(decides ? stages : 0, 3);
      all.push_back({point, *division, space.strategy(point, blocks)});
    }
    return all;
  }

  static LaunchFacts facts(const PlanRequest& request) {
    return {.model = request.scenario.model,
            .ranks = request.scenario.run.ranks,
            .node_devices = 8,
            .sequence_length = request.scenario.run.sequence_length};
  }

  static ImportedStrategy read(LaunchSoftware software, const std::string& text,
                               const ModelConfig& model, std::int64_t ranks) {
    // Its name is the file's own, whatever the file is called; its ranks are the file's, too.
    const ImportContext open{.model = &model, .infer_ranks = true};
    if (software == LaunchSoftware::megatron) return import_megatron(text, "args.sh", open);
    if (software == LaunchSoftware::torchtitan) return import_torchtitan(text, "c.toml", open);
    return import_deepspeed(text, "ds.json", {.ranks = ranks, .model = &model});
  }
};

struct Counted {
  std::int64_t written = 0, refused = 0;
};

// All that a software can say comes back as it was, the whole struct; the others are refused, and
// they are what --software leaves out of a search.
TEST_F(Launch, RoundTripsLoseNothing) {
  const PlanRequest asked = request();
  const LaunchFacts known = facts(asked);
  const sim::PlanSpace space = plan_space(asked);
  const std::vector<Planned> all = plans(asked, space);
  ASSERT_GT(all.size(), 5000U);
  for (const auto& [software, profile, least] :
       {std::tuple{LaunchSoftware::deepspeed, "deepspeed", 40},
        std::tuple{LaunchSoftware::megatron, "megatron-core", 500},
        std::tuple{LaunchSoftware::torchtitan, "torch-fsdp2", 200}}) {
    if (software == LaunchSoftware::torchtitan && !has_toml()) continue;
    Counted counted;
    const SoftwareLimits limits(profile, known.model, space);
    for (const auto& [point, division, strategy] : all) {
      const bool is_allowed = limits.allow(point, division);
      std::string text;
      try {
        text = write_launch(software, strategy, known).text;
        ASSERT_TRUE(is_allowed) << text;
      } catch (const Error& error) {
        ASSERT_EQ(error.code(), ErrorCode::invalid) << error.what();
        ASSERT_FALSE(is_allowed) << error.what();
        ++counted.refused;
        continue;
      }
      ++counted.written;
      const ImportedStrategy back = read(software, text, known.model, known.ranks);
      ASSERT_TRUE(back.strategy == strategy)
          << text << "\n"
          << strategy_to_json(back.strategy).dump(1) << strategy_to_json(strategy).dump(1);
      ASSERT_EQ(back.ranks, known.ranks) << text;
      ASSERT_TRUE(back.refusals.empty()) << back.refusals.front();
    }
    RecordProperty(name_of(software), static_cast<int>(counted.written));
    EXPECT_GE(counted.written, least) << name_of(software);
    EXPECT_GT(counted.refused, 0) << name_of(software);
  }
}

Strategy plain(const std::string& name, std::int64_t ranks) {
  return load_strategy(name, {.ranks = ranks,
                              .precision = DType::bf16,
                              .micro_batch = 1,
                              .gradient_accumulation = 8})
      .strategy;
}

std::string refusal_of(LaunchSoftware software, const Strategy& strategy,
                       const LaunchFacts& facts) {
  try {
    write_launch(software, strategy, facts);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::invalid);
    return error.what();
  }
  return "written";
}

TEST_F(Launch, RefusesWhatASoftwareDoesNotHaveAndSaysWhatItTakes) {
  const LaunchFacts known = facts(request());
  Strategy cut = plain("zero-1", 1);
  cut.tensor = {.ranks = 2, .sequence_parallel = true};
  cut.pipeline = {.ranks = 4, .schedule = PipelineKind::zb_h1};
  const std::string deepspeed = refusal_of(LaunchSoftware::deepspeed, cut, known);
  EXPECT_SAYS(deepspeed, "tensor parallelism of 2 ranks");
  EXPECT_SAYS(deepspeed, "a pipeline of 4 ranks");
  EXPECT_SAYS(deepspeed, "--constrain tensor=1,pipeline=1");
  EXPECT_SAYS(refusal_of(LaunchSoftware::megatron, cut, known), "schedule zb-h1");
  EXPECT_SAYS(refusal_of(LaunchSoftware::torchtitan, cut, known), "--constrain ");
  EXPECT_SAYS(refusal_of(LaunchSoftware::accelerate, cut, known), "a pipeline: ");
  EXPECT_SAYS(refusal_of(LaunchSoftware::accelerate, plain("zero-1", 8), known), "zero>=2");
  Strategy part = plain("zero-1", 8);
  part.recompute = {.mode = RecomputeMode::selective, .activation = true};
  EXPECT_SAYS(refusal_of(LaunchSoftware::megatron, part, known), "recompute selective:mlp");
  Strategy other = plain("zero-1", 8);
  other.optimizer.bias_correction = false;
  EXPECT_SAYS(refusal_of(LaunchSoftware::megatron, other, known), "bias_correction");
  other.zero.stage = 2;
  EXPECT_SAYS(refusal_of(LaunchSoftware::torchtitan, other, known), "bias_correction");
  EXPECT_SAYS(refusal_of(LaunchSoftware::torchtitan_python, other, known), "bias_correction");
  LaunchFacts uneven = known;
  uneven.model.layers = 30;
  Strategy piped = plain("zero-1", 2);
  piped.pipeline.ranks = 4;
  uneven.model.layers = 29;
  EXPECT_SAYS(refusal_of(LaunchSoftware::megatron, piped, uneven), "29 layers over 4 stages");
  piped.recompute = {.mode = RecomputeMode::first_blocks, .stage_blocks = {3, 2, 1, 0}};
  EXPECT_SAYS(refusal_of(LaunchSoftware::megatron, piped, known),
              "recompute blocks:3,2,1,0: --recompute-num-layers is one number for all stages");
  EXPECT_SAYS(refusal_of(LaunchSoftware::torchtitan, piped, known), "recompute blocks:3,2,1,0");
}

// Megatron core_v0.16.1 counts embedding and loss as a layer of the first and the last stage.
TEST_F(Launch, MegatronCountsEmbeddingAndLoss) {
  LaunchFacts uneven = facts(request());
  uneven.ranks = 4;
  const std::string embedding = "--account-for-embedding-in-pipeline-split",
                    loss = "--account-for-loss-in-pipeline-split";
  struct Cut {
    std::vector<std::int64_t> layers;
    bool counts_embedding, counts_loss;
  };
  for (const Cut& cut : {Cut{{7, 8, 8, 7}, true, true}, Cut{{7, 8, 8, 8}, true, false},
                         Cut{{8, 8, 8, 7}, false, true}, Cut{{8, 8, 8, 8}, false, false}}) {
    uneven.model.layers = std::accumulate(cut.layers.begin(), cut.layers.end(), std::int64_t{0});
    Strategy piped = plain("zero-1", 2);
    piped.pipeline = {.ranks = 4, .layers_per_stage = cut.layers};
    const std::string text = write_launch(LaunchSoftware::megatron, piped, uneven).text;
    EXPECT_EQ(text.find(embedding) != std::string::npos, cut.counts_embedding) << text;
    EXPECT_EQ(text.find(loss) != std::string::npos, cut.counts_loss) << text;
    const Strategy back =
        import_megatron(text, "a.sh", {.ranks = 4, .model = &uneven.model}).strategy;
    EXPECT_EQ(layers_of_stages(uneven.model, back.pipeline), cut.layers);
  }
}

TEST_F(Launch, PythonAndYamlSayThePlan) {
  const LaunchFacts known = facts(request());
  Strategy sharded = plain("zero-3", 8);
  sharded.recompute.mode = RecomputeMode::full;
  const std::string python = write_launch(LaunchSoftware::torchtitan_python, sharded, known).text;
  EXPECT_SAYS(python, "config = llama3_8b()");
  EXPECT_SAYS(python, "config.parallelism.fsdp_reshard_after_forward = \"always\"");
  EXPECT_SAYS(python, "config.activation_checkpoint = FullAC.Config()");
  Strategy part = sharded;
  part.recompute = {.mode = RecomputeMode::selective, .products = true};
  EXPECT_SAYS(write_launch(LaunchSoftware::torchtitan_python, part, known).text,
              "config.activation_checkpoint = SelectiveAC.Config()");
  EXPECT_SAYS(write_launch(LaunchSoftware::torchtitan, part, known).text,
              "mode = \"selective\"\nselective_ac_option = \"op\"");
  EXPECT_SAYS(refusal_of(LaunchSoftware::megatron, part, known), "recompute selective:products");
  const LaunchFile yaml = write_launch(LaunchSoftware::accelerate, sharded, known);
  EXPECT_SAYS(yaml.text, "fsdp_reshard_after_forward: true");
  EXPECT_SAYS(yaml.text, "fsdp_activation_checkpointing: true");
  EXPECT_SAYS(yaml.text, "num_processes: 8");
  EXPECT_FALSE(yaml.notes.empty());
  LaunchFacts unknown = known;
  unknown.model.name = "mine\"\nos.system('x')";
  EXPECT_SAYS(refusal_of(LaunchSoftware::torchtitan_python, sharded, unknown),
              "torchtitan 0.3 has");
  for (const auto software : {LaunchSoftware::megatron, LaunchSoftware::torchtitan}) {
    const std::string text = write_launch(software, sharded, unknown).text;
    EXPECT_EQ(text.find("\nos.system"), std::string::npos) << "a name leaves its comment";
  }
}

}  // namespace
}  // namespace zl
