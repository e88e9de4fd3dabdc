// Configuration that people wrote for other software, and what is wrong with it.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "core/base/error.h"
#include "scenarios/launch/megatron.h"
#include "scenarios/launch/toml_document.h"
#include "scenarios/launch/torchtitan.h"
#include "tests/planner/says.h"

namespace zl {
namespace {

TEST(ForeignFiles, ReadsTheScriptsOfPeople) {
  const char* script =
      "#!/bin/bash\nGPUS=8 # of a node\nNODES=2\nTP=4\n"
      "DISTRIBUTED_ARGS=(\n  --nproc_per_node $GPUS --nnodes ${NODES}\n)\n"
      "MORE+=(\n  \"--clip-grad 0.5\" \"--data-path ${WHERE}\"\n)\n"
      "ARGS=\" \\\n  --micro-batch-size 2 \\\n --global-batch-size 16\"\n"
      "MODEL_ARGS=(--num-layers 16 --pipeline-model-parallel-size 2\n"
      "  --num-layers-per-virtual-pipeline-stage 4)\n"
      "torchrun ${DISTRIBUTED_ARGS[@]} pretrain_gpt.py ${MODEL_ARGS[@]} \\\n"
      "  $ARGS --tensor-model-parallel-size $TP \\\n"
      "  --sequence-parallel --bf16 --use-distributed-optimizer --lr 6.0e-5 --save $1 --frobnicate "
      "3\n";
  const ImportedStrategy read = import_megatron(script, "dir/gpt.sh", {.infer_ranks = true});
  EXPECT_EQ(read.ranks, 16);
  EXPECT_EQ(read.strategy.name, "gpt");
  EXPECT_EQ(read.strategy.tensor, (TensorConfig{.ranks = 4, .sequence_parallel = true}));
  EXPECT_EQ(read.strategy.pipeline.virtual_stages, 2);
  EXPECT_EQ(read.strategy.pipeline.schedule, PipelineKind::interleaved);
  EXPECT_EQ(read.strategy.micro_batch, 2);
  EXPECT_EQ(read.strategy.gradient_clipping, 0.5);
  const auto path = std::ranges::find(read.effects, "--data-path", &Effect::key);
  ASSERT_NE(path, read.effects.end());
  EXPECT_EQ(path->given, "\"${WHERE}\"");
  EXPECT_EQ(read.strategy.gradient_accumulation, 4);
  EXPECT_EQ(read.strategy.zero.stage, 1);
  EXPECT_EQ(read.strategy.precision.compute_dtype, DType::bf16);
  EXPECT_EQ(read.strategy.optimizer.lr, 6e-5);
  ASSERT_FALSE(read.warnings.empty());
  EXPECT_SAYS(read.warnings.back(), "dir/gpt.sh:18: --frobnicate: unknown to zerolab");
}

std::string error_of_script(const std::string& script) {
  try {
    import_megatron(script, "a.sh", {.infer_ranks = true});
  } catch (const Error& error) {
    return error.what();
  }
  return "read";
}

TEST(ForeignFiles, NamesTheLineOfWhatIsWrong) {
  EXPECT_SAYS(error_of_script("--bf16\n--micro-batch-size two\n"),
              "a.sh:2: --micro-batch-size: \"two\" is not a whole number");
  EXPECT_SAYS(error_of_script("--bf16"), "--micro-batch-size: missing");
  EXPECT_SAYS(error_of_script("--micro-batch-size 1\n\n--lr \"3"),
              "a.sh:3: the quote \" has no end");
  EXPECT_SAYS(error_of_script("A=(\n--micro-batch-size 1"), "a.sh:1: the array's ( has no )");
  EXPECT_SAYS(error_of_script("--micro-batch-size $MBS"), "its value is $MBS");
  EXPECT_SAYS(error_of_script("--micro-batch-size 1\n--fp16 --bf16"),
              "a.sh:2: --fp16: contradicts");
  EXPECT_SAYS(error_of_script("--micro-batch-size 1\n--num-layers 12\n"
                              "--account-for-embedding-in-pipeline-split\n"
                              "--pipeline-model-parallel-size 4\n--bf16"),
              "a.sh:3: --account-for-embedding-in-pipeline-split: 13 layers with what is counted "
              "as one over 4 stages");
  EXPECT_SAYS(error_of_script("--micro-batch-size 1 --nproc-per-node 8\n--global-batch-size 12"),
              "a.sh:2: --global-batch-size: 12 is no multiple");
  EXPECT_SAYS(error_of_script("# zerolab: {\n--micro-batch-size 1"), "a.sh:1: what follows");
  std::string bomb = "A=xxxxxxxxxx\n";
  for (char c = 'B'; c < 'T'; ++c) {
    const std::string before = std::string("$") + static_cast<char>(c - 1);
    bomb += std::string(1, c) + "=" + before + before + before + before + "\n";
  }
  EXPECT_SAYS(error_of_script(bomb), "a word of more than 64 KiB");
}

std::string error_of_toml(const std::string& toml) {
  try {
    import_torchtitan(toml, "c.toml", {.infer_ranks = true});
  } catch (const Error& error) {
    return error.what();
  }
  return "read";
}

// The parser is undefined on them elsewhere.
TEST(ForeignFiles, OtherCharactersMayStandInTomlComments) {
  if (!has_toml()) GTEST_SKIP() << "this build has no toml++";
  EXPECT_EQ(toml_keys("# na\u00efve\na = 1  # \u00fc\n", "a.toml").size(), 1u);
  for (const char* text : {"a = 1\nb\u00fc = 2", "a = 1\nb = \u00fc", "a = 1\nb = \"\u00fc\"",
                           "a = 1\nb = \"#\" # \u00fc", "a = 1\n[\x01]"}) {
    EXPECT_SAYS(error_of_toml(text), "c.toml:2: malformed TOML");
  }
}

TEST(ForeignFiles, ReadsTomlOfPeople) {
  if (!has_toml()) {
    EXPECT_SAYS(error_of_toml(""), "install libtomlplusplus-dev");
    GTEST_SKIP() << "this build has no toml++";
  }
  const ImportedStrategy read = import_torchtitan(
      "[model]\nname = \"llama3\"\nflavor = \"8B\"\n[training]\nlocal_batch_size = 4\n"
      "[parallelism]\ndata_parallel_shard_degree = 2\npipeline_parallel_degree = 2\n"
      "pipeline_parallel_schedule = \"Interleaved1F1B\"\n[activation_checkpoint]\nmode = \"full\"\n"
      "[parallelism.deep]\nfrob = 1\n",
      "c.toml", {.infer_ranks = true});
  EXPECT_EQ(read.ranks, 4);
  EXPECT_EQ(read.strategy.zero.stage, 1);
  EXPECT_EQ(read.strategy.pipeline.virtual_stages, 2);
  EXPECT_EQ(read.strategy.pipeline.layers_per_stage, (std::vector<std::int64_t>{8, 9, 8, 7}));
  EXPECT_EQ(read.strategy.gradient_accumulation, 4);
  ASSERT_FALSE(read.warnings.empty());
  EXPECT_SAYS(read.warnings.back() + read.warnings.front(), "parallelism.deep.frob: unknown");
  EXPECT_SAYS(error_of_toml("[training]\nlocal_batch_size = \n"), "c.toml:2:");
  EXPECT_SAYS(error_of_toml("[training]\nlocal_batch_size = 1.5\n"),
              "c.toml:2: training.local_batch_size: 1.5 is not a whole number");
  EXPECT_SAYS(error_of_toml("[parallelism]\npipeline_parallel_degree = 2\n"
                            "pipeline_parallel_schedule = \"2F1B\"\n"),
              "c.toml:3: parallelism.pipeline_parallel_schedule: \"2F1B\" is not one of");
}

RecomputeConfig recomputed_of(const std::string& toml, std::size_t refusals = 0) {
  const std::string model = "[model]\nname = \"llama3\"\nflavor = \"8B\"\n";
  const ImportedStrategy read = import_torchtitan(model + "[activation_checkpoint]\n" + toml,
                                                  "c.toml", {.infer_ranks = true});
  EXPECT_EQ(read.refusals.size(), refusals) << toml;
  return read.strategy.recompute;
}

// torchtitan 0.2.2: every second layer by default; 0.3's SelectiveAC is its "op".
TEST(ForeignFiles, ReadsTorchtitansSelectiveRecomputation) {
  if (!has_toml()) GTEST_SKIP() << "this build has no toml++";
  using enum RecomputeMode;
  const RecomputeConfig half{.mode = first_blocks, .blocks = 16};
  EXPECT_EQ(recomputed_of(""), half);
  EXPECT_EQ(recomputed_of("mode = \"selective\"\nselective_ac_option = \"3\"\n"),
            (RecomputeConfig{.mode = first_blocks, .blocks = 10}));
  EXPECT_EQ(recomputed_of("mode = \"selective\"\nselective_ac_option = \"op\"\n"),
            (RecomputeConfig{.mode = selective, .products = true}));
  for (const char* every : {"0", "1"}) {
    EXPECT_EQ(recomputed_of("selective_ac_option = \"" + std::string(every) + "\"\n"),
              RecomputeConfig{.mode = full});
  }
  EXPECT_EQ(recomputed_of("selective_ac_option = \"33\"\n"), RecomputeConfig{});
  EXPECT_EQ(recomputed_of("mode = \"memory_budget\"\n", 1), RecomputeConfig{});
  EXPECT_SAYS(error_of_toml("[activation_checkpoint]\nselective_ac_option = \"some\"\n"),
              "c.toml:2: activation_checkpoint.selective_ac_option: ");
  const ImportedStrategy plain = import_torchtitan("", "c.toml", {.infer_ranks = true});
  ASSERT_EQ(plain.refusals.size(), 1U) << "of a model that is not named";
  EXPECT_SAYS(plain.refusals.front(), "activation_checkpoint.selective_ac_option");
}

}  // namespace
}  // namespace zl
