// Optimizers, schedules and recomputation of DeepSpeed files.
#include <gtest/gtest.h>

#include "scenarios/files/strategy_json.h"
#include "tests/scenarios/importing.h"

namespace zl {
namespace {

TEST(ImportDeepSpeed, Optimizers) {
  const auto kind = [](const std::string& body) {
    return import_text(with("\"optimizer\": " + body)).strategy.optimizer.kind;
  };
  EXPECT_EQ(kind(R"({"type": "Adam"})"), OptimizerKind::adamw);
  EXPECT_EQ(kind(R"({"type": "adam", "params": {"adam_w_mode": false}})"), OptimizerKind::adam);
  EXPECT_EQ(kind(R"({"type": "AdamW", "params": {"torch_adam": true}})"), OptimizerKind::adamw);
  EXPECT_EQ(kind(R"({"type": "Lamb"})"), OptimizerKind::lamb);
  EXPECT_EQ(kind(R"({"type": "SGD", "params": {"momentum": 0.9}})"), OptimizerKind::sgd);
  const OptimizerConfig lamb = import_text(with(R"("optimizer": {"type": "LAMB", "params": {
      "lr": 2e-3, "betas": [0.8, 0.99], "eps": 1e-6, "weight_decay": 0.1, "max_coeff": 0.3,
      "min_coeff": 0.02, "bias_correction": false}})"))
                                   .strategy.optimizer;
  EXPECT_EQ(lamb.lr, 2e-3);
  EXPECT_EQ(lamb.beta1, 0.8);
  EXPECT_EQ(lamb.lamb_max_trust, 0.3);
  EXPECT_EQ(lamb.lamb_min_trust, 0.02);
  EXPECT_FALSE(lamb.bias_correction);
  EXPECT_CONTAINS(rejection(with(R"("optimizer": {"type": "AdmaW"})")), "the nearest is \"AdamW\"");
  EXPECT_CONTAINS(rejection(with(R"("optimizer": {"type": "AdamW", "params": {"momentum": 0.9}})")),
                  "strategy.optimizer.params.momentum: not a parameter of AdamW");
  EXPECT_CONTAINS(
      rejection(with(R"("optimizer": {"type": "AdamW", "params": {"betas": [0.9, 1.5]}})")),
      "[0.9,1.5] is not a list of two numbers");
  EXPECT_CONTAINS(rejection(with(R"("fp16": {"enabled": true, "loss_scale": 8},
                                    "optimizer": {"type": "Lamb"})")),
                  "LAMB needs the dynamic loss scale");
}

TEST(ImportDeepSpeed, Schedules) {
  const ScheduleConfig cosine = import_text(with(R"("scheduler": {"type": "WarmupCosineLR",
      "params": {"total_num_steps": 10, "warmup_num_steps": 4, "cos_min_ratio": 0.01,
                 "warmup_type": "linear", "warmup_min_ratio": 0.1}})"))
                                    .strategy.schedule;
  EXPECT_EQ(cosine.kind, ScheduleKind::warmup_cosine_lr);
  EXPECT_EQ(cosine.total_num_steps, 10);
  EXPECT_EQ(cosine.cos_min_ratio, 0.01);
  EXPECT_EQ(cosine.warmup_min_ratio, 0.1);
  EXPECT_FALSE(cosine.warmup_log);
  const Strategy warmup = import_text(with(R"("optimizer": {"type": "Adam", "params": {"lr": 5e-4}},
      "scheduler": {"type": "WarmupLR", "params": {"warmup_max_lr": null}})"))
                              .strategy;
  EXPECT_EQ(warmup.schedule.warmup_max_lr, 5e-4);
  EXPECT_EQ(warmup.schedule.warmup_num_steps, 1000);
  EXPECT_TRUE(warmup.schedule.warmup_log);
  const ScheduleConfig cycle = import_text(with(R"("scheduler": {"type": "OneCycle", "params": {
      "cycle_min_lr": 0.1, "cycle_max_lr": 1, "cycle_first_step_size": 2, "decay_step_size": 1,
      "decay_lr_rate": 1}})"))
                                   .strategy.schedule;
  EXPECT_EQ(cycle.kind, ScheduleKind::one_cycle);
  EXPECT_EQ(cycle.cycle_second_step_size, 0);
  const ScheduleConfig range = import_text(with(R"("scheduler": {"type": "LRRangeTest", "params": {
      "lr_range_test_min_lr": 1, "lr_range_test_step_size": 2, "lr_range_test_staircase": true}})"))
                                   .strategy.schedule;
  EXPECT_EQ(range.lr_range_test_step_size, 2);
  EXPECT_TRUE(range.lr_range_test_staircase);
  EXPECT_CONTAINS(rejection(with(R"("scheduler": {"type": "CosineDecay",
      "params": {"last_batch_iteration": -1}})")),
                  "the nearest is \"WarmupCosineLR\"");
  const ScheduleConfig growing =
      import_text(with(R"("scheduler": {"type": "ExponentialLR", "params": {"gamma": 1.25}})"))
          .strategy.schedule;
  EXPECT_EQ(growing.kind, ScheduleKind::exponential);
  EXPECT_EQ(growing.gamma, 1.25);
  EXPECT_CONTAINS(rejection(with(R"("scheduler": {"type": "ExponentialLR"})")), "gamma: missing");
  const ImportedStrategy torchs = import_text(with(
      R"("scheduler": {"type": "CosineAnnealingLR", "params": {"T_max": 500, "eta_min": 1e-5}})"));
  ASSERT_EQ(torchs.refusals.size(), 1u);
  EXPECT_CONTAINS(torchs.refusals[0], "one of PyTorch's; available are WarmupLR");
  EXPECT_CONTAINS(rejection(with(R"("scheduler": {"type": "WarmupDecayLR"})")),
                  "total_num_steps: missing");
  EXPECT_CONTAINS(rejection(with(R"("scheduler": {"type": "OneCycle"})")), "cycle_min_lr: missing");
  EXPECT_CONTAINS(
      rejection(with(R"("scheduler": {"type": "WarmupLR", "params": {"warmup_type": "cubic"}})")),
      "\"cubic\" is not one of log, linear");
  EXPECT_CONTAINS(
      rejection(with(R"("scheduler": {"type": "WarmupLR", "params": {"cycle_min_lr": 1}})")),
      "not a parameter of WarmupLR");
}

TEST(ImportDeepSpeed, AShortWarmupTakesTwoSteps) {
  for (const int steps : {0, 1}) {
    const ImportedStrategy imported =
        import_text(with(R"("scheduler": {"type": "WarmupLR", "params": {"warmup_num_steps": )" +
                         std::to_string(steps) + "}}"));
    const Effect& row = effect(imported, "scheduler.params.warmup_num_steps");
    EXPECT_EQ(row.effective, "2");
    EXPECT_EQ(row.why, steps == 0
                           ? "DeepSpeed warms up for two steps at least, and refuses 0 since 0.19.3"
                           : "DeepSpeed warms up for two steps at least");
  }
}

TEST(ImportDeepSpeed, ZeroHysteresisAndNoMinimumAreTaken) {
  const ImportedStrategy imported =
      import_text(with(R"("fp16": {"enabled": true, "hysteresis": 0, "min_loss_scale": 0})"));
  EXPECT_EQ(imported.strategy.loss_scaler.hysteresis, 0);
  EXPECT_EQ(imported.strategy.loss_scaler.min_scale, 0);
  EXPECT_CONTAINS(effect(imported, "fp16.hysteresis").why, "the scale never falls");
  EXPECT_CONTAINS(effect(imported, "fp16.min_loss_scale").why, "no lower end");
}

// What changed between releases follows x-zerolab.deepspeed_version.
TEST(ImportDeepSpeed, TheReleaseDecides) {
  const auto as = [](const std::string& release, const std::string& members) {
    return import_text(
        with(members + R"(, "x-zerolab": {"deepspeed_version": ")" + release + "\"}"));
  };
  const std::string plain = R"("steps_per_print": 1)";
  EXPECT_EQ(import_text(with(plain)).strategy.gradient_clipping, 1.0);
  EXPECT_EQ(as("0.19.8", plain).strategy.gradient_clipping, 1.0);
  EXPECT_EQ(as("0.19.3", plain).strategy.gradient_clipping, 1.0);
  EXPECT_EQ(as("0.19.2", plain).strategy.gradient_clipping, 0.0);
  EXPECT_EQ(as("0.18.9", plain).strategy.gradient_clipping, 0.0);
  EXPECT_EQ(as("0.18.9", R"("gradient_clipping": 0.5)").strategy.gradient_clipping, 0.5);
  EXPECT_EQ(as("0.18.9", R"("gradient_clipping": "auto")").strategy.gradient_clipping, 1.0);

  const std::string stairs = R"("scheduler": {"type": "OneCycle", "params": {"cycle_min_lr": 1e-4,
      "cycle_max_lr": 1e-3, "cycle_first_stair_count": 3}})";
  EXPECT_EQ(as("0.19.4", stairs).strategy.schedule.cycle_first_stair_count, 3);
  EXPECT_EQ(as("0.19.4", stairs).strategy.schedule.cycle_second_stair_count, 3);
  EXPECT_EQ(as("0.18.9", stairs).strategy.schedule.cycle_first_stair_count, 0);
  EXPECT_EQ(effect(as("0.18.9", stairs), "scheduler.params.cycle_first_stair_count").why,
            "no effect: DeepSpeed uses it since 0.19.4");

  const std::string onebit = R"("optimizer": {"type": "OneBitAdam", "params": {"freeze_step": 5}})";
  EXPECT_EQ(effect(as("0.19.8", onebit), "optimizer.type").why,
            "by zerolab's own; DeepSpeed has none since 0.19.7");
  EXPECT_EQ(effect(as("0.19.6", onebit), "optimizer.type").why, "");
  for (const char* bad : {"latest", "0.19", "0.19.8.1", "0.19.x", "", "-1.0.0"}) {
    SCOPED_TRACE(bad);
    EXPECT_CONTAINS(message_of([&] { as(bad, plain); }), "is no release; write \"0.19.8\"");
  }
}

// DeepSpeed's type where the file enables fp16, fp32 where it is the run that does; one key away.
TEST(ImportDeepSpeed, Fp16GradientsAccumulateAsInDeepSpeed) {
  const auto types = [](const std::string& members, std::optional<DType> precision) {
    return import_text(with(members), {.ranks = 4, .precision = precision}).strategy.precision;
  };
  const std::string half = R"("fp16": {"enabled": true})", open = R"("fp16": {"enabled": "auto"})";
  EXPECT_EQ(types(half, {}).grad_accum_dtype, DType::f16);
  EXPECT_EQ(types(open, DType::f16).grad_accum_dtype, DType::f16);
  EXPECT_EQ(types(half, DType::bf16).grad_accum_dtype, DType::f32);
  EXPECT_EQ(types(R"("steps_per_print": 1)", DType::f16).grad_accum_dtype, DType::f32);
  const std::string wide = half + R"(, "data_types": {"grad_accum_dtype": "fp32"})";
  EXPECT_EQ(types(wide, {}).grad_accum_dtype, DType::f32);
  EXPECT_CONTAINS(effect(import_text(with(half)), "data_types.grad_accum_dtype").why,
                  "\"fp32\" is recommended");
}

TEST(ImportDeepSpeed, OneBitOptimizers) {
  const OptimizerConfig adam =
      import_text(with(R"("optimizer": {"type": "OneBitAdam", "params": {"lr": 1e-3,
          "freeze_step": 400, "cuda_aware": false, "comm_backend_name": "nccl"}})"))
          .strategy.optimizer;
  EXPECT_EQ(adam.kind, OptimizerKind::onebit_adam);
  EXPECT_EQ(adam.onebit.freeze_step, 400);
  EXPECT_TRUE(adam.bias_correction);
  const OptimizerConfig compat =
      import_text(with(R"("optimizer": {"type": "onebitadam", "params": {"bias_correction": true}},
          "x-zerolab": {"deepspeed_compat": true, "automatic_freeze": true,
                        "variance_stability": 0.9})"))
          .strategy.optimizer;
  EXPECT_EQ(compat.onebit.freeze_step, 100000);
  EXPECT_TRUE(compat.onebit.deepspeed_compat && compat.onebit.automatic_freeze);
  EXPECT_EQ(compat.onebit.variance_stability, 0.9);
  EXPECT_FALSE(compat.bias_correction);
  const OptimizerConfig zero_one =
      import_text(with(R"("optimizer": {"type": "ZeroOneAdam", "params": {"var_freeze_step": 10,
          "var_update_scaler": 2, "local_step_scaler": 30, "local_step_clipper": 4}})"))
          .strategy.optimizer;
  EXPECT_EQ(zero_one.kind, OptimizerKind::zero_one_adam);
  EXPECT_EQ(zero_one.onebit.var_freeze_step, 10);
  EXPECT_EQ(zero_one.onebit.var_update_scaler, 2);
  EXPECT_EQ(zero_one.onebit.local_step_scaler, 30);
  EXPECT_EQ(zero_one.onebit.local_step_clipper, 4);
  const OptimizerConfig lamb =
      import_text(with(R"("optimizer": {"type": "OneBitLamb", "params": {"freeze_step": 7,
          "max_coeff": 9, "min_coeff": 0.1, "coeff_beta": 0.8, "factor_max": 3, "factor_min": 0.4,
          "factor_threshold": 0.2}})"))
          .strategy.optimizer;
  EXPECT_EQ(lamb.kind, OptimizerKind::onebit_lamb);
  EXPECT_EQ(lamb.lamb_max_trust, 9);
  EXPECT_EQ(lamb.onebit.freeze_step, 7);
  EXPECT_EQ(lamb.onebit.coeff_beta, 0.8);
  EXPECT_EQ(lamb.onebit.factor_max, 3);
  EXPECT_EQ(lamb.onebit.factor_min, 0.4);
  EXPECT_EQ(lamb.onebit.factor_threshold, 0.2);
}

TEST(ImportDeepSpeed, OneBitOptimizersNeedAStageAndAFreezeWithinTheRun) {
  const std::string onebit = R"("optimizer": {"type": "OneBitAdam"}, )";
  for (const char* stage : {"2", "3"}) {
    EXPECT_CONTAINS(
        rejection(with(onebit + R"("zero_optimization": {"stage": )" + stage + "}")),
        "strategy.zero_optimization.stage: " + std::string(stage) +
            " does not go with 1-bit Adam, which needs each rank's own gradients whole; use stage "
            "0 or 1");
  }
  EXPECT_CONTAINS(rejection(with(R"("optimizer": {"type": "ZeroOneAdam"},
      "zero_optimization": {"stage": 1})")),
                  "strategy.zero_optimization.stage: 1 does not go with 0/1 Adam");
  EXPECT_CONTAINS(rejection(with(onebit + R"("gradient_allreduce_op": "sum")")),
                  "gradient_allreduce_op: \"sum\" does not go with compressed momenta");
  ImportContext context;
  context.steps = 20;
  const auto freeze = [&](const std::string& step) {
    return import_deepspeed(
               R"({"train_batch_size": 4, "optimizer": {"type": "OneBitAdam", "params":
                  {"freeze_step": )" +
                   step + "}}}",
               "inline", context)
        .strategy.optimizer.onebit.freeze_step;
  };
  EXPECT_EQ(freeze("19"), 19);
  EXPECT_EQ(freeze("\"auto\""), 3);
  EXPECT_CONTAINS(message_of([&] { freeze("20"); }),
                  "strategy.optimizer.params.freeze_step: 20 is not below run.steps 20: nothing "
                  "would ever be compressed");
}

TEST(ImportDeepSpeed, Recompute) {
  const auto config = [](const std::string& text) {
    return import_text(with("\"x-zerolab\": {\"recompute\": \"" + text + "\"}")).strategy.recompute;
  };
  for (const char* text :
       {"none", "full", "every:3", "blocks:2", "selective:attention", "selective:mlp",
        "selective:attention,mlp", "selective:products", "auto"}) {
    EXPECT_EQ(recompute_text(config(text)), text);
  }
  EXPECT_EQ(config("every:3").every, 3);
  EXPECT_EQ(config("blocks:2").blocks, 2);
  const std::string stages = R"("x-zerolab": {"parallel": {"pipeline": 2}, "recompute": ")";
  const RecomputeConfig each = import_text(with(stages + "blocks:2,0\"}")).strategy.recompute;
  EXPECT_EQ(each.stage_blocks, (std::vector<std::int64_t>{2, 0}));
  EXPECT_EQ(recompute_text(each), "blocks:2,0");
  EXPECT_CONTAINS(rejection(with(stages + "blocks:2,1,0\"}")),
                  "x-zerolab.recompute: blocks of 3 stages, there are 2; give 2 numbers, or one "
                  "for all");
  for (const char* text : {"every:0", "every:", "every:x", "blocks:0", "blocks:-1", "blocks:1.5",
                           "blocks:0,0", "blocks:1,", "blocks:,1", "blocks:1,x", "selective:",
                           "selective:norm", "selective:attention,products", "half"}) {
    EXPECT_CONTAINS(
        rejection(with("\"x-zerolab\": {\"recompute\": \"" + std::string(text) + "\"}")),
        "is not one of none, full, every:K");
  }
  EXPECT_CONTAINS(
      rejection(with(R"("gradient_checkpointing": true, "x-zerolab": {"recompute": "none"})")),
      "contradicts gradient_checkpointing");
}

TEST(ImportDeepSpeed, StochasticRoundingIsForAdamInBf16) {
  const std::string on = R"("x-zerolab": {"stochastic_rounding": true})";
  EXPECT_TRUE(import_text(with(R"("bf16": {"enabled": true}, )" + on))
                  .strategy.precision.stochastic_rounding);
  EXPECT_FALSE(
      import_text(with(R"("bf16": {"enabled": true})")).strategy.precision.stochastic_rounding);
  EXPECT_CONTAINS(rejection(with(on)), "x-zerolab.stochastic_rounding: true is for bf16");
  EXPECT_CONTAINS(
      rejection(with(R"("bf16": {"enabled": true}, "optimizer": {"type": "Lamb"}, )" + on)),
      "x-zerolab.stochastic_rounding: true is for bf16");
}

}  // namespace
}  // namespace zl
