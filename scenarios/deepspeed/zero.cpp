#include "scenarios/deepspeed/zero.h"

#include <cmath>
#include <nlohmann/json.hpp>

#include "scenarios/deepspeed/fields.h"

namespace zl {
namespace {

using fields::kZero;

// What "auto" is: factor * hidden^power, as Hugging Face's integration resolves it.
struct SizeByHidden {
  std::string_view name;
  int power;
  double factor;
  const char* formula;
};
constexpr SizeByHidden kSizes[] = {{"reduce_bucket_size", 2, 1.0, "hidden * hidden"},
                                   {"prefetch_bucket_size", 2, 0.9, "0.9 * hidden * hidden"},
                                   {"param_persistence_threshold", 1, 10.0, "10 * hidden"}};

std::int64_t sized_by_hidden(Keys& keys, const ImportContext& context, const std::string& name) {
  for (const SizeByHidden& size : kSizes) {
    if (size.name != name) continue;
    if (context.model == nullptr) {
      const AutoRule open{std::stod(std::string(find_key(kZero + name)->standard)),
                          std::string(size.formula) + " of the run's model (--model)", true};
      return keys.integer(kZero + name, &open);
    }
    const std::int64_t hidden = context.model->hidden;
    const AutoRule rule{size.factor * std::pow(static_cast<double>(hidden), size.power),
                        std::string(size.formula) + ", model.hidden = " + std::to_string(hidden)};
    return keys.integer(kZero + name, &rule);
  }
  return keys.integer(kZero + name);
}

int build_stage(Keys& keys) {
  const GivenKey* stage = keys.given(kZero + "stage");
  if (stage != nullptr && stage->key == "zero_optimization") {
    const int out = stage->value->get<bool>() ? 1 : 0;
    keys.effects().record(
        stage->path, out, EffectStatus::honoured,
        "legacy boolean: " + std::string(out == 1 ? "true is stage 1" : "false is stage 0"));
    return out;
  }
  const std::int64_t value = keys.integer(kZero + "stage");
  if (value >= 0 && value <= 3) return static_cast<int>(value);
  keys.effects().reject(kZero + "stage", std::to_string(value) + " is not one of 0, 1, 2, 3");
  return 0;
}

void build_quantized(Keys& keys, ZeroConfig& zero) {
  const std::string weights = kZero + "zero_quantized_weights";
  const std::string gradients = kZero + "zero_quantized_gradients";
  zero.quantized_weights = keys.boolean(weights);
  zero.quantized_gradients = keys.boolean(gradients);
  if (zero.quantized_weights && zero.stage != 3) {
    keys.effects().reject(weights, "true needs stage 3, which gathers weights; remove it");
  }
  if (zero.quantized_gradients && zero.stage == 0) {
    keys.effects().reject(gradients,
                          "true needs stage 1, 2 or 3, which scatter gradients; remove it");
  } else if (zero.quantized_gradients) {
    keys.effects().record(gradients, true, EffectStatus::honoured,
                          "8 bits and one all-to-all; DeepSpeed sends 4 bits, within nodes first");
  }
}

}  // namespace

ZeroConfig build_zero(Keys& keys, const ImportContext& context) {
  ZeroConfig zero;
  zero.stage = build_stage(keys);
  const bool stage3 = zero.stage == 3;
  zero.overlap_comm = stage3;
  if (keys.is_set(kZero + "overlap_comm")) {
    zero.overlap_comm = keys.boolean(kZero + "overlap_comm");
  } else {
    keys.effects().record(kZero + "overlap_comm", stage3, EffectStatus::defaulted,
                          "default: true only for stage 3");
  }
  zero.reduce_bucket_size = sized_by_hidden(keys, context, "reduce_bucket_size");
  if (keys.boolean(kZero + "legacy_stage1")) {
    keys.effects().reject(kZero + "legacy_stage1",
                          "true is no longer supported by DeepSpeed; remove it");
  }
  build_quantized(keys, zero);
  zero.secondary_partition = keys.integer(kZero + "zero_hpz_partition_size");
  fields::visit_stage3(zero, [&](const char* name, std::int64_t& size) {
    if (stage3) {
      size = sized_by_hidden(keys, context, name);
    } else if (const GivenKey* key = keys.given(kZero + name)) {
      keys.effects().record(key->path, *key->value, EffectStatus::honoured,
                            "no effect: only stage 3 uses it");
    }
  });
  return zero;
}

}  // namespace zl
