#include "scenarios/deepspeed/import.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>

#include "scenarios/deepspeed/keys.h"
#include "scenarios/files/model_file.h"
#include "scenarios/files/strategy_json.h"
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

TEST(ImportDeepSpeed, KnowsEveryKeyPathSeenInUse) {
  std::ifstream file(std::string(ZL_SOURCE_DIR) + "/tests/scenarios/key_paths.txt");
  std::size_t count = 0;
  for (std::string path; std::getline(file, path); ++count) {
    EXPECT_TRUE(is_known_path(path)) << path;
  }
  EXPECT_GE(count, 290u);
  EXPECT_FALSE(is_known_path("zero_optimization.stag"));
  EXPECT_FALSE(is_known_path("fp16.enabled.deeper"));
}

// An object {"a": {"b": value}} from "a.b"; a "*" becomes a name.
Json nested(std::string_view path, const Json& value) {
  const std::size_t dot = path.find('.');
  std::string key(path.substr(0, dot));
  if (key == "*") key = "some_name";
  if (dot == std::string_view::npos) return {{key, value}};
  return {{key, nested(path.substr(dot + 1), value)}};
}

template <class Visit>
void for_each_row(Visit&& visit) {
  for (const auto table : {training_keys(), zero_keys(), surrounding_keys()}) {
    for (const KeySpec& row : table) visit(row);
  }
}

TEST(ImportDeepSpeed, EveryKeyGivenAtItsDefaultChangesNothing) {
  const std::string plain =
      strategy_to_json(import_text(with("\"steps_per_print\": 1")).strategy).dump();
  int checked = 0;
  for_each_row([&](const KeySpec& row) {
    if (row.handling != Handling::applied && row.handling != Handling::fixed) return;
    if (row.standard == "null" || row.path.starts_with("scheduler.")) return;
    if (row.path.starts_with("sparse_attention.")) return;  // each of them asks for the section
    static const std::set<std::string_view> others{
        "momentum",          "nesterov",          "max_coeff",       "min_coeff",
        "dampening",         "freeze_step",       "coeff_beta",      "factor_max",
        "factor_min",        "factor_threshold",  "var_freeze_step", "var_update_scaler",
        "local_step_scaler", "local_step_clipper"};
    if (row.path.starts_with("optimizer.") &&
        others.contains(row.path.substr(row.path.rfind('.') + 1))) {
      return;  // not AdamW's
    }
    Json document = nested(row.path, Json::parse(row.standard));
    document["train_micro_batch_size_per_gpu"] = 1;
    const ImportedStrategy imported = import_text(document.dump());
    EXPECT_EQ(strategy_to_json(imported.strategy).dump(), plain) << row.path;
    EXPECT_TRUE(imported.refusals.empty() && imported.warnings.empty()) << row.path;
    ++checked;
  });
  EXPECT_GT(checked, 90);
}

TEST(ImportDeepSpeed, EveryTypedKeyRefusesAnotherType) {
  for_each_row([&](const KeySpec& row) {
    if (row.handling == Handling::rejected || (row.types & json_type::any)) return;
    const bool list = (row.types & json_type::list) != 0, text = (row.types & json_type::text) != 0;
    const Json wrong = !list ? Json::array({1}) : text ? Json(true) : Json("text");
    Json document = nested(row.path, wrong);
    document["train_micro_batch_size_per_gpu"] = 1;
    if (row.path == "train_micro_batch_size_per_gpu") document[std::string(row.path)] = wrong;
    SCOPED_TRACE(std::string(row.path));
    EXPECT_CONTAINS(rejection(document.dump()), wrong.dump() + " is not ");
  });
}

TEST(ImportDeepSpeed, KnownMistakesSayWhatToWrite) {
  EXPECT_CONTAINS(
      rejection(with(R"("optimizer": {"type": "AdamW", "params": {"max_grad_norm": 1.0}})")),
      "strategy.optimizer.params.max_grad_norm: write gradient_clipping");
  EXPECT_CONTAINS(
      rejection(with(R"("zero_optimization": {"stage3_param_persitance_threshold": 1e5})")),
      "stage3_param_persistence_threshold");
}

// Where DeepSpeed goes on as if nothing were there, so does zerolab, and says so.
TEST(ImportDeepSpeed, WhatDeepSpeedIgnoresIsIgnoredAloud) {
  const ImportedStrategy one = import_text(with(R"("reduce_bucket_size": 2e8)"));
  EXPECT_EQ(one.strategy.zero.reduce_bucket_size, 500000000);
  EXPECT_EQ(effect(one, "reduce_bucket_size").effective, "null");
  EXPECT_EQ(one.warnings, std::vector<std::string>{
                              "strategy.reduce_bucket_size: no effect here: DeepSpeed "
                              "ignores it here; write zero_optimization.reduce_bucket_size"});
  const ImportedStrategy several =
      import_text(with(R"("lr_scheduler": {"type": "WarmupLR", "params": {"warmup_num_steps": 5}},
              "max_grad_norm": 0.5, "tensorboard": {"enabled": true},
              "optimizer": {"type": "AdamW", "params": {}, "eps": 1e-5})"));
  EXPECT_EQ(several.strategy.schedule.kind, ScheduleKind::constant);
  EXPECT_EQ(several.strategy.optimizer.epsilon, 1e-8);
  EXPECT_EQ(several.warnings,
            std::vector<std::string>{
                "strategy.lr_scheduler.type, lr_scheduler.params.warmup_num_steps, max_grad_norm, "
                "tensorboard.enabled, optimizer.eps: no effect here: `zerolab show strategy` says "
                "why"});
}

TEST(ImportDeepSpeed, UnknownKeysGetTheNearestKnownOne) {
  EXPECT_CONTAINS(rejection(with("\"gradient_cliping\": 1.0")),
                  "strategy.gradient_cliping: unknown key; the nearest known key is "
                  "\"gradient_clipping\"");
  EXPECT_CONTAINS(rejection(with("\"zero_optimization\": {\"stagee\": 2}")),
                  "strategy.zero_optimization.stagee: unknown key; the nearest known key is "
                  "\"zero_optimization.stage\"");
  EXPECT_CONTAINS(rejection(with(R"("zero_optimization": {"offload_param": {"devise": "cpu"}})")),
                  "\"zero_optimization.offload_param.device\"");
  EXPECT_CONTAINS(
      rejection(with(R"("zero_optimization": {"stage": 3, "stage3_prefetch_bucket_sise": 1})")),
      "\"zero_optimization.stage3_prefetch_bucket_size\"");
  EXPECT_CONTAINS(
      rejection(with(R"("optimizer": {"type": "AdamW", "params": {"learning_rate": 1}})")),
      "strategy.optimizer.params.learning_rate: unknown key");
  EXPECT_CONTAINS(rejection(with(R"("lr_scheduler": {"kind": "WarmupLR"})")),
                  "the nearest known key is \"scheduler\"");
  EXPECT_NO_THROW(import_text(with(R"("x-note": "mine", "zero_optimization": {"x-note": [1]})")));
}

// DeepSpeed passes over names that it does not know at the top of a file; not within its sections.
TEST(ImportDeepSpeed, WhatDeepSpeedPassesOverHasNoEffect) {
  const ImportedStrategy imported = import_text(
      with(R"("_comment": "mine", "cuda_visible_devices": "0,1", "monitor_config": {"a": [1]})"));
  for (const char* key : {"_comment", "cuda_visible_devices", "monitor_config"}) {
    EXPECT_CONTAINS(effect(imported, key).why, "DeepSpeed reads no key of this name");
  }
  ASSERT_EQ(imported.warnings.size(), 1U);
  EXPECT_CONTAINS(imported.warnings[0], "cuda_visible_devices");
  EXPECT_CONTAINS(rejection(with(R"("zero_optimization": {"_comment": 1})")), "unknown key");
  // A file without any of its keys is another one.
  EXPECT_CONTAINS(rejection(R"({"colour": "red"})"), "strategy.colour: unknown key");
}

TEST(ImportDeepSpeed, AllRejectionsAreReportedAtOnce) {
  const std::string message =
      rejection(with(R"("gradient_cliping": 1, "fp17": {"enabled": true})"));
  EXPECT_CONTAINS(message, "gradient_cliping");
  EXPECT_CONTAINS(message, "fp17");
  const ImportedStrategy shown =
      inspect_deepspeed(with("\"gradient_cliping\": 1"), "f.json", four_ranks());
  EXPECT_EQ(effect(shown, "gradient_cliping").status, EffectStatus::rejected);
  EXPECT_EQ(shown.rejections.size(), 1u);
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

TEST(ImportDeepSpeed, BatchTriangle) {
  struct Case {
    const char* text;
    std::int64_t micro, accumulation;
  };
  for (const Case& c :
       {Case{R"({"train_batch_size": 24, "train_micro_batch_size_per_gpu": 2,
                                 "gradient_accumulation_steps": 3})",
             2, 3},
        Case{R"({"train_batch_size": 24, "train_micro_batch_size_per_gpu": 2})", 2, 3},
        Case{R"({"train_batch_size": 24, "gradient_accumulation_steps": 3})", 2, 3},
        Case{R"({"train_micro_batch_size_per_gpu": 2, "gradient_accumulation_steps": 3})", 2, 3},
        Case{R"({"train_batch_size": 24})", 6, 1},
        Case{R"({"train_micro_batch_size_per_gpu": 2})", 2, 1},
        Case{R"({"train_batch_size": 24, "train_micro_batch_size_per_gpu": "auto"})", 6, 1},
        Case{R"({"train_batch_size": "auto"})", 1, 1},
        Case{R"({"gradient_accumulation_steps": 3, "train_batch_size": "auto"})", 1, 3}}) {
    const Strategy s = import_text(c.text).strategy;
    EXPECT_EQ(s.micro_batch, c.micro) << c.text;
    EXPECT_EQ(s.gradient_accumulation, c.accumulation) << c.text;
  }
}

TEST(ImportDeepSpeed, AMissingBatchIsTheRunsToGive) {
  const std::string text = R"({"gradient_accumulation_steps": 3})";
  const ImportedStrategy imported = import_text(text);
  EXPECT_EQ(imported.strategy.micro_batch, 1);
  EXPECT_EQ(imported.strategy.gradient_accumulation, 3);
  EXPECT_EQ(imported.warnings,
            std::vector<std::string>{"strategy.train_micro_batch_size_per_gpu: the file gives no "
                                     "batch; 1 unless the run gives one (--micro-batch)"});
  const ImportedStrategy given = import_text(text, {.ranks = 4, .micro_batch = 8});
  EXPECT_EQ(given.strategy.micro_batch, 8);
  EXPECT_TRUE(given.warnings.empty());
  EXPECT_TRUE(import_text(R"({"train_batch_size": "auto"})").warnings.empty());
}

// Where nothing runs, the three sizes of a file say of how many ranks it is.
TEST(ImportDeepSpeed, TheBatchImpliesTheRanks) {
  const std::string text = R"({"train_batch_size": 256, "train_micro_batch_size_per_gpu": 8,
                               "gradient_accumulation_steps": 2})";
  const ImportedStrategy inferred = import_text(text, {.infer_ranks = true});
  EXPECT_EQ(inferred.ranks, 16);
  EXPECT_EQ(inferred.strategy.micro_batch, 8);
  EXPECT_EQ(effect(inferred, "train_batch_size").why, "as written, a batch of 16 ranks");
  EXPECT_CONTAINS(rejection(text, {.ranks = 4}), "; the file is one for 16 ranks");
  EXPECT_CONTAINS(rejection(R"({"train_batch_size": 20, "train_micro_batch_size_per_gpu": 8,
                                "gradient_accumulation_steps": 1})",
                            {.infer_ranks = true}),
                  "20 is not micro batch 8 * accumulation 1 * ranks 1 = 8");
  EXPECT_EQ(import_text(R"({"train_batch_size": 24})", {.infer_ranks = true}).ranks, 1);
}

TEST(ImportDeepSpeed, BatchTriangleErrorsSolveTheEquation) {
  const std::string message =
      rejection(R"({"train_batch_size": 16, "gradient_accumulation_steps": 4})", {3});
  EXPECT_CONTAINS(
      message,
      "strategy.train_batch_size: 16 is not micro batch 1 * accumulation 4 * ranks 3 = 12");
  EXPECT_CONTAINS(message, "12 (micro batch 1, accumulation 4)");
  EXPECT_CONTAINS(message, "24 (micro batch 2, accumulation 4)");
  EXPECT_CONTAINS(rejection(R"({"train_batch_size": 2})"), "4 (micro batch 1, accumulation 1)");
  EXPECT_CONTAINS(rejection(R"({"train_batch_size": 10, "train_micro_batch_size_per_gpu": 2})"),
                  "8 (micro batch 2, accumulation 1) or 16 (micro batch 2, accumulation 2)");
  EXPECT_CONTAINS(rejection(R"({"train_batch_size": 16, "train_micro_batch_size_per_gpu": 2,
                               "gradient_accumulation_steps": 4})"),
                  "32 (micro batch 2, accumulation 4) or 16 (micro batch 2, accumulation 2)");
  EXPECT_CONTAINS(rejection(R"({"train_batch_size": 0})"), "0 is not at least 1");
}

// Every solution that an error prints must itself import.
TEST(ImportDeepSpeed, PrintedBatchSolutionsAreValid) {
  for (std::int64_t ranks : {1, 2, 3, 5, 8}) {
    for (std::int64_t total = 1; total <= 40; ++total) {
      for (std::int64_t micro : {0, 1, 3}) {
        Json document = {{"train_batch_size", total}, {"steps_per_print", 1}};
        if (micro) document["train_micro_batch_size_per_gpu"] = micro;
        const ImportedStrategy shown = inspect_deepspeed(document.dump(), "f", {ranks});
        if (shown.rejections.empty()) {
          EXPECT_EQ(shown.strategy.micro_batch * shown.strategy.gradient_accumulation * ranks,
                    total);
          continue;
        }
        const std::string text = shown.rejections.front();
        const std::size_t at = text.find("Nearest valid: ") + 15;
        document["train_batch_size"] = std::stoll(text.substr(at));
        EXPECT_NO_THROW(import_text(document.dump(), {ranks})) << text;
      }
    }
  }
}

TEST(ImportDeepSpeed, RunBatchOverridesTheFile) {
  const Strategy s = import_text(R"({"train_batch_size": 16, "gradient_accumulation_steps": 4})",
                                 {4, nullptr, {}, 3, 2})
                         .strategy;
  EXPECT_EQ(s.micro_batch, 3);
  EXPECT_EQ(s.gradient_accumulation, 2);
  EXPECT_EQ(import_text(R"({"train_batch_size": 16})", {4, nullptr, {}, 0, 2}).strategy.micro_batch,
            2);
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
