#include "scenarios/deepspeed/checks.h"

#include <nlohmann/json.hpp>

#include "scenarios/deepspeed/fields.h"

namespace zl {
namespace {

// A deprecated key beside its successor.
void reject_deprecated_twins(Keys& keys) {
  struct Pair {
    std::string old_key, new_key;
  };
  const std::string& zero = fields::kZero;
  for (const Pair& pair : {Pair{zero + "cpu_offload", zero + "offload_optimizer.device"},
                           Pair{zero + "cpu_offload_param", zero + "offload_param.device"},
                           Pair{zero + "cpu_offload_params", zero + "offload_param.device"},
                           Pair{zero + "stage3_gather_fp16_weights_on_model_save",
                                zero + "gather_16bit_weights_on_model_save"}}) {
    if (keys.given(pair.old_key) && keys.given(pair.new_key)) {
      keys.effects().reject(pair.old_key, "deprecated, and its successor \"" +
                                              keys.given(pair.new_key)->key +
                                              "\" is given too; remove the old key");
    }
  }
}

}  // namespace

void build_checks(Keys& keys, Strategy& strategy) {
  strategy.deepspeed_scale_order = keys.boolean("x-zerolab.deepspeed_scale_order");
  strategy.separate_tied_gradient = keys.text("x-zerolab.tied_gradient") == "separate";
  strategy.precision.stochastic_rounding = keys.boolean("x-zerolab.stochastic_rounding");
  const bool adam = strategy.optimizer.kind == OptimizerKind::adamw ||
                    strategy.optimizer.kind == OptimizerKind::adam;
  if (strategy.precision.stochastic_rounding &&
      (strategy.precision.compute_dtype != DType::bf16 || !adam)) {
    keys.effects().reject("x-zerolab.stochastic_rounding",
                          "true is for bf16 weights under AdamW or Adam");
  }
  if (keys.is_set("vocabulary_size") && keys.integer("vocabulary_size") % 8 != 0) {
    keys.effects().warn("vocabulary_size: " + shown(*keys.given("vocabulary_size")->value) +
                        " is not a multiple of 8, which matrix units prefer");
  }
  const std::string bucket = "zero_optimization.allgather_bucket_size";
  if (keys.is_set(bucket) && whole_number(*keys.given(bucket)->value).value_or(0) % 2 != 0) {
    keys.effects().reject(
        bucket, shown(*keys.given(bucket)->value) + " is odd; give an even number of elements");
  }
  if (strategy.optimizer.kind == OptimizerKind::lamb && strategy.loss_scaler.static_scale > 0) {
    keys.effects().reject("fp16.loss_scale", "LAMB needs the dynamic loss scale; write 0");
  }
  reject_deprecated_twins(keys);
}

}  // namespace zl
