#include "scenarios/report/show.h"

#include <nlohmann/json.hpp>

#include "scenarios/files/model_file.h"
#include "scenarios/files/strategy_json.h"

namespace zl {
namespace {

Json unit(const char* name, std::int64_t count, std::int64_t parameters) {
  return {{"unit", name}, {"count", count}, {"parameters", parameters}};
}

Json units_of(const ModelConfig& model) {
  const std::int64_t all = model.head_parameters();
  const std::int64_t blocks = model.parameters() - model.embedding_parameters() - all;
  Json units = Json::array();
  units.push_back(unit("embedding", 1, model.embedding_parameters()));
  units.push_back(unit("block", model.layers, blocks / model.layers));
  if (model.encoder) {
    units.push_back(unit("head", 1, all));
    return units;
  }
  const std::int64_t norm = (model.norm == NormKind::layer_norm ? 2 : 1) * model.hidden;
  const std::int64_t head = all - norm;
  units.push_back(unit("final_norm", 1, norm));
  if (head > 0) units.push_back(unit("head", 1, head));
  return units;
}

Json text_or_null(const std::string& json_text) {
  return json_text.empty() ? Json(nullptr) : Json::parse(json_text);
}

}  // namespace

Json show_model(const ModelConfig& model, std::int64_t sequence_length) {
  const std::int64_t sequence = sequence_length > 0 ? sequence_length : model.positions();
  const std::int64_t parameters = model.parameters();
  Json out = model_to_json(model);
  out["parameters"] = parameters;
  out["embedding_parameters"] = model.embedding_parameters();
  out["sequence_length"] = sequence;
  out["flops_per_token"] = model.flops_per_token(sequence);
  out["flops_convention"] = "6N+12Lhs";
  out["units"] = units_of(model);
  // ZeRO paper, section 3: fp32 masters and two moments take 12 bytes beside weights and gradients,
  // which are in fp32 here by default.
  out["bytes"] = {{"weights_fp32", 4 * parameters},
                  {"weights_bf16", 2 * parameters},
                  {"states_fp32_adam", 16 * parameters},
                  {"states_mixed_adam", 18 * parameters}};
  return out;
}

Json show_strategy(const ImportedStrategy& imported, std::int64_t ranks) {
  const Strategy& s = imported.strategy;
  Json effects = Json::array();
  for (const Effect& effect : imported.effects) {
    effects.push_back({{"key", effect.key},
                       {"given", text_or_null(effect.given)},
                       {"effective", text_or_null(effect.effective)},
                       {"status", name_of(effect.status)},
                       {"why", effect.why}});
  }
  Json out = {{"name", s.name}, {"effects", effects}};
  out["derived"] = {{"zero_stage", s.zero.stage},
                    {"ranks", ranks},
                    {"micro_batch", s.micro_batch},
                    {"gradient_accumulation", s.gradient_accumulation},
                    {"train_batch_size", s.micro_batch * s.gradient_accumulation * ranks},
                    {"compute_dtype", name_of(s.precision.compute_dtype)},
                    {"grad_accum_dtype", name_of(s.precision.grad_accum_dtype)},
                    {"communication_dtype", name_of(s.precision.communication_dtype)},
                    {"recompute", recompute_text(s.recompute)}};
  out["deepspeed"] = strategy_to_json(s);
  out["warnings"] = imported.warnings;
  out["refusals"] = imported.refusals;
  out["rejections"] = imported.rejections;
  return out;
}

}  // namespace zl
