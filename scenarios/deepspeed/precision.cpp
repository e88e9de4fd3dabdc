#include "scenarios/deepspeed/precision.h"

#include <nlohmann/json.hpp>

#include "scenarios/deepspeed/fields.h"

namespace zl {
namespace {

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
  if (context.ranks > 1 && keys.is_set(type + ".enabled")) {
    keys.effects().warn("communication_data_type: " + why);
  }
}

}  // namespace

void build_precision(Keys& keys, const ImportContext& context, Strategy& strategy) {
  bool half = keys.boolean("fp16.enabled");
  bool brain = keys.boolean("bf16.enabled");
  if (half && brain) {
    keys.effects().reject(keys.given("bf16.enabled") ? "bf16.enabled" : "fp16.enabled",
                          "fp16 and bf16 are both enabled; disable one");
  }
  const bool file_says = keys.is_set("fp16.enabled") || keys.is_set("bf16.enabled");
  const auto chosen =
      context.precision || file_says ? context.precision : context.default_precision;
  if (chosen) {
    half = *chosen == DType::f16;
    brain = *chosen == DType::bf16;
    const std::string why =
        std::string(context.precision ? "run.precision is " : "the default on this cluster is ") +
        name_of(*chosen);
    for (const auto& [path, value] : {std::pair{"fp16.enabled", half}, {"bf16.enabled", brain}}) {
      const bool agrees = keys.is_set(path) && keys.given(path)->value->get<bool>() == value;
      keys.effects().record(path, value, agrees ? EffectStatus::honoured : EffectStatus::defaulted,
                            why);
    }
  }
  strategy.precision.compute_dtype = half ? DType::f16 : brain ? DType::bf16 : DType::f32;
  if (!half) {
    keys.effects().mark_unused("fp16.", "no effect: fp16 is off");
    return;
  }
  fields::visit_loss_scaler(strategy.loss_scaler, [&keys](const char* name, auto& member) {
    keys.read(std::string("fp16.") + name, member);
  });
}

void build_gradients(Keys& keys, const ImportContext& context, Strategy& strategy) {
  strategy.gradient_clipping = keys.number("gradient_clipping");
  fields::visit_scaling_of_gradients(
      strategy.zero, [&keys](const char* name, auto& member) { keys.read(name, member); });
  const std::string op = keys.text("gradient_allreduce_op");
  strategy.zero.sum_gradients = op == "sum" || op == "SUM" || op == "Sum";
  if (strategy.zero.sum_gradients && strategy.zero.stage == 3) {
    keys.effects().reject("gradient_allreduce_op",
                          "\"sum\" is not possible with stage 3; use \"mean\"");
  }
  strategy.precision.grad_accum_dtype = keys.type("data_types.grad_accum_dtype", DType::f32);
  strategy.precision.communication_dtype =
      keys.type("communication_data_type", strategy.precision.grad_accum_dtype);
  note_wide_gradients(keys, context, strategy);
}

}  // namespace zl
