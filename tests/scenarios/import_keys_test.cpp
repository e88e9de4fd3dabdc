// Which keys a DeepSpeed file may have: known, mistyped, without effect.
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <set>

#include "scenarios/deepspeed/keys.h"
#include "scenarios/files/strategy_json.h"
#include "tests/scenarios/importing.h"

namespace zl {
namespace {

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

}  // namespace
}  // namespace zl
