// Predicted step times beside published ones of other systems: what the error bars of the
// catalogue's clusters, which nobody has calibrated, claim. The README's table is printed by
// test_runner --gtest_filter='Published.*'.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>
#include <fstream>

#include "scenarios/runner.h"

namespace zl {
namespace {

struct Published {
  const char* what;
  const char* model;
  const char* cluster;
  int ranks;
  int sequence, micro_batch, accumulation;
  const char* strategy;  // keys of a DeepSpeed file
  double seconds;        // of one optimizer step, as measured
};

constexpr const char* kZero1 = R"("bf16": {"enabled": true}, "zero_optimization": {"stage": 1})";
constexpr const char* kFsdp = R"("bf16": {"enabled": true}, "zero_optimization": {"stage": 3},
    "x-zerolab": {"recompute": "selective:attention,mlp"})";
constexpr const char* kZero3 = R"("fp16": {"enabled": true}, "zero_optimization": {"stage": 3},
    "x-zerolab": {"recompute": "full"})";
constexpr const char* kZero3Offload = R"("fp16": {"enabled": true},
    "zero_optimization": {"stage": 3, "offload_optimizer": {"device": "cpu"}},
    "activation_checkpointing": {"cpu_checkpointing": true}, "x-zerolab": {"recompute": "full"})";
constexpr const char* kAdam = R"("fp16": {"enabled": true}, "communication_data_type": "fp16",
    "zero_optimization": {"stage": 0})";
constexpr const char* kOnebit = R"("fp16": {"enabled": true}, "communication_data_type": "fp16",
    "zero_optimization": {"stage": 0},
    "optimizer": {"type": "OneBitAdam", "params": {"lr": 4e-4, "freeze_step": 2}})";

// Narayanan et al. 2021, equation 3: FLOPs of a GPT's step with recomputation, over the rate.
constexpr double at_rate(double teraflops, double batch, double s, double layers, double h) {
  const double flops =
      96 * batch * s * layers * h * h * (1 + s / (6 * h) + 51200 / (16 * layers * h));
  return flops / (teraflops * 1e12);
}

// llm.c's README; torchtitan (Liang et al. 2024, tables 1 and 3, compiled; its H100 have 96 GB of
// HBM2e and 500 W); Narayanan et al. 2021, table 2 (DeepSpeed ZeRO-3); DeepSpeed on Azure, 2022;
// 1-bit Adam, DeepSpeed's blog of 2020.
const Published kPublished[] = {
    {"llm.c, GPT-2 124M", "gpt2-124m", "a100-80", 8, 1024, 64, 1, kZero1, 0.300},
    {"llm.c, GPT-2 355M", "gpt2-355m", "a100-80", 8, 1024, 64, 1, kZero1, 0.820},
    {"llm.c, GPT-2 774M", "gpt2-774m", "a100-80", 8, 1024, 32, 2, kZero1, 1.700},
    {"torchtitan, Llama 3 8B", "llama3-8b", "h100", 8, 8192, 2, 1, kFsdp, 2 * 8192 / 6667.0},
    {"torchtitan, Llama 3 8B", "llama3-8b", "h100", 128, 8192, 2, 1, kFsdp, 2 * 8192 / 6514.0},
    {"DeepSpeed, 175B", "megatron-175b", "a100-80", 384, 2048, 4, 1, kZero3,
     at_rate(144, 4, 2048, 96, 12288)},
    {"DeepSpeed on Azure, 175B", "megatron-175b", "a100-80", 256, 512, 32, 1, kZero3Offload,
     at_rate(204.49, 32, 512, 96, 12288)},
    {"DeepSpeed on Azure, 530B", "megatron-530b", "a100-80", 512, 1024, 8, 1, kZero3Offload,
     at_rate(170.42, 8, 1024, 105, 20480)},
    {"DeepSpeed on Azure, 1T", "megatron-1t", "a100-80", 1024, 1024, 8, 1, kZero3Offload,
     at_rate(165.36, 8, 1024, 128, 25600)},
    {"Adam, BERT-Large", "bert-large", "v100-ethernet", 8, 128, 16, 1, kAdam, 16 * 8 / 46.0},
    {"Adam, BERT-Large", "bert-large", "v100-ethernet", 16, 128, 16, 1, kAdam, 16 * 16 / 88.0},
    {"Adam, BERT-Large", "bert-large", "v100-ethernet", 32, 128, 16, 1, kAdam, 16 * 32 / 132.0},
    {"1-bit Adam, BERT-Large", "bert-large", "v100-ethernet", 8, 128, 16, 1, kOnebit,
     16 * 8 / 247.0},
    {"1-bit Adam, BERT-Large", "bert-large", "v100-ethernet", 16, 128, 16, 1, kOnebit,
     16 * 16 / 452.0},
    {"1-bit Adam, BERT-Large", "bert-large", "v100-ethernet", 32, 128, 16, 1, kOnebit,
     16 * 32 / 870.0}};

Scenario scenario_of(const Published& run) {
  const std::string path = testing::TempDir() + "published.json";
  std::ofstream(path) << R"({"schema": 1, "model": ")" << run.model << R"(", "cluster": ")"
                      << run.ranks << "x" << run.cluster
                      << R"(", "strategies": [{"train_micro_batch_size_per_gpu": )"
                      << run.micro_batch << R"(, "gradient_accumulation_steps": )"
                      << run.accumulation << ", " << run.strategy << R"(}], "run": {"ranks": )"
                      << run.ranks << R"(, "steps": 12, "sequence_length": )" << run.sequence
                      << "}}";
  return load_scenario(path, {});
}

TEST(Published, NineTenthsLieWithinTheErrorBars) {
  int within = 0;
  double squares = 0;
  for (const Published& run : kPublished) {
    const Scenario scenario = scenario_of(run);
    const RunResult result = Runner().run(scenario, scenario.strategies[0], "sim");
    ASSERT_EQ(result.outcome, Outcome::ok) << run.what;
    const double predicted = result.step_time.median, bar = result.step_time_high / predicted - 1;
    const double error = run.seconds / predicted - 1;
    squares += error * error;
    within += std::abs(error) <= bar;
    std::printf("| %s | %dx%s | %.3f s | %.3f s | %+.0f %% | ±%.0f %% |\n", run.what, run.ranks,
                run.cluster, run.seconds, predicted, 100 / (1 + error) - 100, 100 * bar);
  }
  const double count = std::size(kPublished), root = std::sqrt(squares / count);
  std::printf("measured / predicted - 1, root mean square: %.2f\n", root);
  const double claimed = scenario_cluster(scenario_of(kPublished[0])).step_error;
  EXPECT_NEAR(root, claimed, 0.05) << "step_error of scenarios/catalog/clusters/*.json";
  EXPECT_GE(10 * within, 9 * static_cast<int>(count)) << within << " of " << count;
}

}  // namespace
}  // namespace zl
