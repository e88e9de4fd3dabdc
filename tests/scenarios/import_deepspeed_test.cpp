#include "scenarios/deepspeed/import.h"

#include <gtest/gtest.h>

#include "scenarios/files/model_file.h"
#include "tests/scenarios/importing.h"

namespace zl {
namespace {

TEST(ImportDeepSpeed, TheFileOfTheReadmeRunsAsItStands) {
  const ImportedStrategy imported = import_text(
      R"({ "train_batch_size": 16, "gradient_accumulation_steps": 4,
           "zero_optimization": { "stage": 2, "contiguous_gradients": true },
           "gradient_checkpointing": true })");
  EXPECT_EQ(imported.strategy.name, "test");
  EXPECT_EQ(imported.strategy.zero.stage, 2);
  EXPECT_EQ(imported.strategy.micro_batch, 1);
  EXPECT_EQ(imported.strategy.gradient_accumulation, 4);
  EXPECT_EQ(imported.strategy.optimizer.kind, OptimizerKind::adamw);
  EXPECT_EQ(imported.strategy.recompute.mode, RecomputeMode::full);
  EXPECT_EQ(imported.strategy.gradient_clipping, 1.0);
  EXPECT_FALSE(imported.strategy.zero.overlap_comm);
  EXPECT_EQ(effect(imported, "optimizer.type").status, EffectStatus::defaulted);
  EXPECT_CONTAINS(effect(imported, "gradient_checkpointing").why, "DeepSpeed itself ignores");
  EXPECT_EQ(effect(imported, "zero_optimization.contiguous_gradients").status,
            EffectStatus::honoured);
  EXPECT_TRUE(imported.refusals.empty());
}

TEST(ImportDeepSpeed, Stages) {
  EXPECT_CONTAINS(rejection(with("\"zero_optimization\": {\"stage\": 4}")),
                  "strategy.zero_optimization.stage: 4 is not one of 0, 1, 2, 3");
  EXPECT_CONTAINS(rejection(with("\"zero_optimization\": {\"stage\": -1}")), "-1 is not one of");
  EXPECT_EQ(import_text(with("\"zero_optimization\": true")).strategy.zero.stage, 1);
  EXPECT_EQ(import_text(with("\"zero_optimization\": false")).strategy.zero.stage, 0);
  EXPECT_EQ(import_text(with("\"zero_optimization\": {}")).strategy.zero.stage, 0);
  EXPECT_CONTAINS(rejection(with("\"zero_optimization\": 2")), "2 is not an object");
}

TEST(ImportDeepSpeed, StageThreeAliases) {
  const Strategy s = import_text(with(R"("zero_optimization": {"stage": 3,
      "stage3_prefetch_bucket_size": 11, "param_persistence_threshold": 12,
      "stage3_max_live_parameters": 13, "max_reuse_distance": 14,
      "stage3_model_persistence_threshold": 15})"))
                         .strategy;
  EXPECT_EQ(s.zero.prefetch_bucket_size, 11);
  EXPECT_EQ(s.zero.param_persistence_threshold, 12);
  EXPECT_EQ(s.zero.max_live_parameters, 13);
  EXPECT_EQ(s.zero.max_reuse_distance, 14);
  EXPECT_EQ(s.zero.model_persistence_threshold, 15);
  EXPECT_TRUE(s.zero.overlap_comm);
  EXPECT_CONTAINS(rejection(with(R"("zero_optimization": {"stage": 3,
      "stage3_prefetch_bucket_size": 11, "prefetch_bucket_size": 12})")),
                  "the same setting is given as \"zero_optimization.stage3_prefetch_bucket_size\"");
}

TEST(ImportDeepSpeed, AutoValuesFollowTheStatedRules) {
  const ModelConfig model = load_model("gpt2-124m");
  const ImportContext context{4, &model, {}, 0, 0, 500};
  const ImportedStrategy imported = import_text(R"({
    "train_batch_size": "auto", "train_micro_batch_size_per_gpu": "auto",
    "gradient_accumulation_steps": "auto", "gradient_clipping": "auto",
    "fp16": {"enabled": "auto", "loss_scale": 0, "loss_scale_window": 1000,
             "initial_scale_power": 16, "hysteresis": 2, "min_loss_scale": 1},
    "bf16": {"enabled": "auto"},
    "optimizer": {"type": "AdamW", "params": {"lr": "auto", "betas": "auto", "eps": "auto",
                                              "weight_decay": "auto"}},
    "scheduler": {"type": "WarmupDecayLR", "params": {"total_num_steps": "auto",
        "warmup_min_lr": "auto", "warmup_max_lr": "auto", "warmup_num_steps": "auto"}},
    "zero_optimization": {"stage": 3, "overlap_comm": true, "contiguous_gradients": true,
        "sub_group_size": 1e9, "reduce_bucket_size": "auto", "stage3_prefetch_bucket_size": "auto",
        "stage3_param_persistence_threshold": "auto", "stage3_max_live_parameters": 1e9,
        "stage3_max_reuse_distance": 1e9, "stage3_gather_16bit_weights_on_model_save": true,
        "offload_optimizer": {"device": "none", "pin_memory": true},
        "offload_param": {"device": "none", "nvme_path": null}},
    "steps_per_print": 2000, "wall_clock_breakdown": false})",
                                                context);
  const Strategy& s = imported.strategy;
  EXPECT_EQ(s.micro_batch, 1);
  EXPECT_EQ(s.gradient_accumulation, 1);
  EXPECT_EQ(s.precision.compute_dtype, DType::f32);
  EXPECT_EQ(s.zero.reduce_bucket_size, 768 * 768);
  EXPECT_EQ(s.zero.prefetch_bucket_size, 530841);  // floor(0.9 * 768 * 768)
  EXPECT_EQ(s.zero.param_persistence_threshold, 7680);
  EXPECT_EQ(s.schedule.kind, ScheduleKind::warmup_decay_lr);
  EXPECT_EQ(s.schedule.total_num_steps, 500);
  EXPECT_EQ(s.schedule.warmup_num_steps, 50);
  EXPECT_EQ(s.schedule.warmup_max_lr, s.optimizer.lr);
  EXPECT_EQ(effect(imported, "zero_optimization.reduce_bucket_size").status,
            EffectStatus::defaulted);
  EXPECT_CONTAINS(effect(imported, "zero_optimization.reduce_bucket_size").why, "hidden * hidden");
  EXPECT_TRUE(imported.refusals.empty());
}

TEST(ImportDeepSpeed, RunPrecisionDecides) {
  for (const auto& [dtype, text] :
       {std::pair{DType::f32, "fp16"}, {DType::f16, "bf16"}, {DType::bf16, "fp16"}}) {
    const ImportedStrategy imported = import_text(
        with("\"" + std::string(text) + "\": {\"enabled\": true}"), {4, nullptr, dtype});
    EXPECT_EQ(imported.strategy.precision.compute_dtype, dtype);
    EXPECT_CONTAINS(effect(imported, std::string(text) + ".enabled").why, "run.precision");
  }
}

TEST(ImportDeepSpeed, Precision) {
  const Strategy half = import_text(with(R"("fp16": {"enabled": true, "loss_scale": 128,
      "initial_scale_power": 12, "loss_scale_window": 500, "hysteresis": 1,
      "consecutive_hysteresis": true, "min_loss_scale": 2})"))
                            .strategy;
  EXPECT_EQ(half.precision.compute_dtype, DType::f16);
  EXPECT_EQ(half.loss_scaler.static_scale, 128);
  EXPECT_EQ(half.loss_scaler.initial_scale_power, 12);
  EXPECT_EQ(half.loss_scaler.window, 500);
  EXPECT_EQ(half.loss_scaler.hysteresis, 1);
  EXPECT_TRUE(half.loss_scaler.consecutive_hysteresis);
  EXPECT_EQ(half.loss_scaler.min_scale, 2);
  EXPECT_EQ(half.precision.grad_accum_dtype, DType::f16);  // DeepSpeed's default
  EXPECT_EQ(half.precision.communication_dtype, DType::f16);
  EXPECT_EQ(import_text(with("\"bfloat16\": {\"enabled\": true}")).strategy.precision.compute_dtype,
            DType::bf16);
  EXPECT_CONTAINS(rejection(with(R"("fp16": {"enabled": true}, "bf16": {"enabled": true})")),
                  "fp16 and bf16 are both enabled");
  EXPECT_CONTAINS(rejection(with(R"("fp16": {"enabled": true, "loss_scale": true})")),
                  "strategy.fp16.loss_scale: true is not a number");
  EXPECT_CONTAINS(rejection(with(R"("fp16": {"loss_scale_window": 0})")), "is not at least 1");
  const Strategy types = import_text(with(R"("bf16": {"enabled": true},
      "communication_data_type": "bf16", "data_types": {"grad_accum_dtype": "fp32"})"))
                             .strategy;
  EXPECT_EQ(types.precision.communication_dtype, DType::bf16);
  EXPECT_EQ(types.precision.grad_accum_dtype, DType::f32);
}

TEST(ImportDeepSpeed, WideGradientsOfA16BitFileAreSaid) {
  const auto notes = [](const std::string& members, int ranks) {
    return import_text(with(members), {.ranks = ranks}).warnings;
  };
  const std::string plain = R"("bf16": {"enabled": true})";
  ASSERT_EQ(notes(plain, 4).size(), 1u);
  EXPECT_EQ(
      notes(plain, 4).front(),
      "strategy.communication_data_type: gradients are reduced in fp32; \"bf16\", DeepSpeed's "
      "default here, halves their bytes on the wire");
  EXPECT_TRUE(notes(plain, 1).empty());
  EXPECT_TRUE(notes(plain + R"(, "communication_data_type": "fp32")", 4).empty());
  EXPECT_TRUE(notes(plain + R"(, "communication_data_type": "bf16")", 4).empty());
  EXPECT_TRUE(notes(R"("bf16": {"enabled": false})", 4).empty());
  const ImportedStrategy imported = import_text(with(plain));
  EXPECT_EQ(effect(imported, "communication_data_type").effective, "\"fp32\"");
  EXPECT_CONTAINS(effect(imported, "communication_data_type").why, "are reduced in fp32");
}

TEST(ImportDeepSpeed, WhatWouldTrainSomethingElseIsRefused) {
  for (const char* body :
       {R"("zero_optimization": {"stage": 3, "zero_quantized_nontrainable_weights": true})",
        R"("optimizer": {"type": "Lion", "params": {"lr": 1e-4}})",
        R"("curriculum_learning": {"enabled": true, "curriculum_type": "seqlen"})",
        R"("compression_training": {"weight_quantization": {"shared_parameters": {"enabled": true},
            "different_groups": {"wq1": {"params": {"start_bits": 8}, "modules": ["mlp"]}}}})",
        R"("amp": {"enabled": true, "opt_level": "O1"})", R"("tensor_parallel_size": 2)",
        R"("pipeline": {"stages": 2})", R"("elasticity": {"enabled": true})"}) {
    const ImportedStrategy imported = import_text(with(body));
    ASSERT_EQ(imported.refusals.size(), 1u) << body;
    EXPECT_CONTAINS(imported.refusals.front(), "recognised, not implemented yet");
    EXPECT_CONTAINS(message_of([&] { require_runnable(imported); }),
                    "recognised, not implemented yet");
  }
  const ImportedStrategy loco = import_text(
      with(R"("zero_optimization": {"stage": 3, "zero_quantized_nontrainable_weights": true})"));
  EXPECT_EQ(effect(loco, "zero_optimization.zero_quantized_nontrainable_weights").status,
            EffectStatus::not_implemented);
}

TEST(ImportDeepSpeed, WhatOnlyReportsIsNamedAndRuns) {
  const ImportedStrategy imported =
      import_text(with(R"("tensorboard": {"enabled": true, "job_name": "x"},
      "comms_logger": {"enabled": true, "verbose": false}, "wall_clock_breakdown": true,
      "curriculum_learning": {"enabled": false, "min_difficulty": 8}, "aio": {"thread_count": 2})"));
  EXPECT_TRUE(imported.refusals.empty());
  ASSERT_EQ(imported.warnings.size(), 1u);
  EXPECT_CONTAINS(imported.warnings.front(), "tensorboard.enabled");
  EXPECT_EQ(effect(imported, "tensorboard.enabled").status, EffectStatus::not_implemented);
  EXPECT_EQ(effect(imported, "curriculum_learning.min_difficulty").status, EffectStatus::honoured);
}

TEST(ImportDeepSpeed, CrossChecks) {
  EXPECT_CONTAINS(
      rejection(with(R"("gradient_allreduce_op": "sum", "zero_optimization": {"stage": 3})")),
      "\"sum\" is not possible with stage 3");
  EXPECT_TRUE(import_text(with("\"gradient_allreduce_op\": \"SUM\"")).strategy.zero.sum_gradients);
  EXPECT_CONTAINS(rejection(with(R"("zero_optimization": {"legacy_stage1": true})")),
                  "no longer supported");
  EXPECT_CONTAINS(rejection(with(R"("zero_optimization": {"allgather_bucket_size": 7})")),
                  "7 is odd");
  EXPECT_CONTAINS(rejection(with(R"("zero_optimization": {"cpu_offload": false,
      "offload_optimizer": {"device": "none"}})")),
                  "remove the old key");
  EXPECT_EQ(import_text(with("\"vocabulary_size\": 50257")).warnings.size(), 1u);
  EXPECT_CONTAINS(rejection("[1]"), "a strategy is a JSON object");
}

}  // namespace
}  // namespace zl
