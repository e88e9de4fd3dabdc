#include "scenarios/deepspeed/precision.h"

#include <nlohmann/json.hpp>

#include "scenarios/deepspeed/fields.h"

namespace zl {
namespace {

constexpr auto kHalf = "fp16.enabled";
constexpr auto kBrain = "bf16.enabled";

bool is_auto(const Keys& keys, const std::string& path) {
  const GivenKey* key = keys.given(path);
  return key != nullptr && key->is_auto;
}

bool is(const Keys& keys, const std::string& path, bool value) {
  return keys.is_set(path) && keys.given(path)->value->get<bool>() == value;
}

// The file leaves the type to the run: it enables none, and says "auto" or nothing of one.
bool leaves_open(const Keys& keys) {
  if (is(keys, kHalf, true) || is(keys, kBrain, true)) return false;
  return is_auto(keys, kHalf) || is_auto(keys, kBrain) ||
         !(keys.is_set(kHalf) || keys.is_set(kBrain));
}

bool is_undecided(const Keys& keys, const ImportContext& context) {
  return leaves_open(keys) && !context.precision && !context.default_precision;
}

// A run's precision, or the cluster's default unless the file says false of it.
std::optional<DType> chosen_by_run(const Keys& keys, const ImportContext& context) {
  if (context.precision) return context.precision;
  if (!leaves_open(keys)) return std::nullopt;
  const std::optional<DType> standard = context.default_precision;
  const bool forbidden = (standard == DType::f16 && is(keys, kHalf, false)) ||
                         (standard == DType::bf16 && is(keys, kBrain, false));
  return forbidden ? DType::f32 : standard;
}

// DeepSpeed's default is the 16-bit type, and who compares wire bytes must know.
void note_wide_gradients(Keys& keys, const ImportContext& context, const Strategy& strategy) {
  const bool wide = strategy.precision.compute_dtype != DType::f32 &&
                    strategy.precision.communication_dtype == DType::f32;
  if (!wide || strategy.zero.quantized_gradients || keys.is_set("communication_data_type")) return;
  const std::string type = name_of(strategy.precision.compute_dtype);
  const std::string why = "gradients are reduced in fp32; \"" + type +
                          "\", DeepSpeed's default here, halves their bytes on the wire";
  keys.effects().record("communication_data_type", "fp32", EffectStatus::defaulted,
                        "default: " + why);
  const std::string enabled = type + ".enabled";
  if (context.ranks > 1 && (is_auto(keys, enabled) || is(keys, enabled, true))) {
    keys.effects().warn("communication_data_type: " + why);
  }
}

// Of a file that enables fp16 the model's type, as in DeepSpeed; else fp32.
void build_accumulation(Keys& keys, const ImportContext& context, PrecisionConfig& precision) {
  const std::string path = "data_types.grad_accum_dtype";
  const bool deepspeeds =
      precision.compute_dtype == DType::f16 && (is_auto(keys, kHalf) || is(keys, kHalf, true));
  precision.grad_accum_dtype = keys.type(path, deepspeeds ? DType::f16 : DType::f32);
  precision.communication_dtype = keys.type("communication_data_type", precision.grad_accum_dtype);
  if (keys.is_set(path)) return;
  if (deepspeeds) {
    keys.effects().record(
        path, "fp16", EffectStatus::defaulted,
        "DeepSpeed's default, the model's type; \"fp32\" is recommended: sums of micro-batches and "
        "ranks then neither overflow nor round, for 2 more bytes a parameter");
  } else if (is_undecided(keys, context) && is_auto(keys, kHalf)) {
    keys.effects().record(path, "auto", EffectStatus::defaulted,
                          "fp32; fp16 where the run takes fp16, as in DeepSpeed");
  }
}

double build_clipping(Keys& keys, const Release& release) {
  const std::string path = "gradient_clipping";
  if (!keys.is_set(path) && !is_auto(keys, path) && release < kClipsByDefault) {
    keys.effects().record(path, 0, EffectStatus::defaulted,
                          "DeepSpeed's default before 0.19.3: no clipping");
    return 0;
  }
  const AutoRule rule{1.0, "Hugging Face's default max_grad_norm"};
  return keys.number(path, &rule);
}

LossScalerConfig read_loss_scaler(Keys& keys) {
  LossScalerConfig scaler;
  fields::visit_loss_scaler(scaler, reading(keys, "fp16."));
  if (scaler.hysteresis == 0) {
    keys.effects().record("fp16.hysteresis", 0, EffectStatus::honoured,
                          "the scale never falls, as in DeepSpeed, which counts down to 1");
  }
  if (scaler.min_scale == 0) {
    keys.effects().record("fp16.min_loss_scale", 0, EffectStatus::honoured,
                          "no lower end; DeepSpeed refuses 0 since 0.19.3");
  }
  return scaler;
}

}  // namespace

void build_precision(Keys& keys, const ImportContext& context, Strategy& strategy) {
  bool half = keys.boolean(kHalf);
  bool brain = keys.boolean(kBrain);
  if (half && brain) {
    keys.effects().reject(keys.given(kBrain) ? kBrain : kHalf,
                          "fp16 and bf16 are both enabled; disable one");
  }
  const bool undecided = is_undecided(keys, context);
  if (const auto chosen = chosen_by_run(keys, context)) {
    half = *chosen == DType::f16;
    brain = *chosen == DType::bf16;
    const std::string why =
        std::string(context.precision ? "run.precision is " : "the default on this cluster is ") +
        name_of(*chosen);
    for (const auto& [path, value] : {std::pair{kHalf, half}, {kBrain, brain}}) {
      keys.effects().record(
          path, value, is(keys, path, value) ? EffectStatus::honoured : EffectStatus::defaulted,
          why);
    }
  }
  for (const char* path : {kHalf, kBrain}) {
    if (!undecided || is(keys, path, false)) continue;
    keys.effects().record(path, "auto", EffectStatus::defaulted,
                          "the run decides: bf16 or fp16, what the devices of its --cluster have, "
                          "or fp32");
  }
  strategy.precision.compute_dtype = half ? DType::f16 : brain ? DType::bf16 : DType::f32;
  if (!half && !(undecided && is_auto(keys, kHalf))) {
    keys.effects().mark_unused("fp16.", "no effect: fp16 is off");
    return;
  }
  const LossScalerConfig scaler = read_loss_scaler(keys);
  if (half) strategy.loss_scaler = scaler;
}

void build_gradients(Keys& keys, const ImportContext& context, const Release& release,
                     Strategy& strategy) {
  strategy.gradient_clipping = build_clipping(keys, release);
  fields::visit_scaling_of_gradients(
      strategy.zero, [&keys](const char* name, auto& member) { keys.read(name, member); });
  const std::string op = keys.text("gradient_allreduce_op");
  strategy.zero.sum_gradients = op == "sum" || op == "SUM" || op == "Sum";
  if (strategy.zero.sum_gradients && strategy.zero.stage == 3) {
    keys.effects().reject("gradient_allreduce_op",
                          "\"sum\" is not possible with stage 3; use \"mean\"");
  }
  build_accumulation(keys, context, strategy.precision);
  note_wide_gradients(keys, context, strategy);
}

}  // namespace zl
