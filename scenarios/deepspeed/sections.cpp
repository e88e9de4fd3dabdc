#include <cmath>
#include <nlohmann/json.hpp>

#include "scenarios/deepspeed/builder.h"

namespace zl {

namespace {

const std::string kZero = "zero_optimization.";

}  // namespace

void DeepSpeedBuilder::build_zero_stage() {
  const GivenKey* stage = given(kZero + "stage");
  int& out = out_.strategy.zero.stage;
  if (stage != nullptr && stage->key == "zero_optimization") {
    out = stage->value->get<bool>() ? 1 : 0;
    record(stage->path, out, EffectStatus::honoured,
           "legacy boolean: " + std::string(out == 1 ? "true is stage 1" : "false is stage 0"));
    return;
  }
  const std::int64_t value = integer(kZero + "stage");
  if (value < 0 || value > 3) {
    reject(kZero + "stage", std::to_string(value) + " is not one of 0, 1, 2, 3");
  } else {
    out = static_cast<int>(value);
  }
}

void DeepSpeedBuilder::build_zero() {
  build_zero_stage();
  Strategy& s = out_.strategy;
  const bool stage3 = s.zero.stage == 3;
  s.zero.overlap_comm = stage3;
  if (is_set(kZero + "overlap_comm")) {
    s.zero.overlap_comm = boolean(kZero + "overlap_comm");
  } else {
    record(kZero + "overlap_comm", stage3, EffectStatus::defaulted,
           "default: true only for stage 3");
  }
  s.zero.reduce_bucket_size = sized_by_hidden("reduce_bucket_size", 2, 1.0, "hidden * hidden");
  if (boolean(kZero + "legacy_stage1")) {
    reject(kZero + "legacy_stage1", "true is no longer supported by DeepSpeed; remove it");
  }
  if (stage3 && is_set(kZero + "elastic_checkpoint") &&
      given(kZero + "elastic_checkpoint")->value->get<bool>()) {
    reject(kZero + "elastic_checkpoint", "true is not possible with stage 3");
  }
  build_quantized();
  if (stage3) return build_stage3();
  for (const char* name :
       {"prefetch_bucket_size", "param_persistence_threshold", "model_persistence_threshold",
        "max_live_parameters", "max_reuse_distance"}) {
    if (const GivenKey* key = given(kZero + name)) {
      record(key->path, *key->value, EffectStatus::honoured, "no effect: only stage 3 uses it");
    }
  }
}

void DeepSpeedBuilder::build_quantized() {
  Strategy& s = out_.strategy;
  const std::string weights = kZero + "zero_quantized_weights";
  const std::string gradients = kZero + "zero_quantized_gradients";
  s.zero.quantized_weights = boolean(weights);
  s.zero.quantized_gradients = boolean(gradients);
  if (s.zero.quantized_weights && s.zero.stage != 3) {
    reject(weights, "true needs stage 3, which gathers weights; remove it");
  }
  if (s.zero.quantized_gradients && s.zero.stage == 0) {
    reject(gradients, "true needs stage 1, 2 or 3, which scatter gradients; remove it");
  } else if (s.zero.quantized_gradients) {
    record(gradients, true, EffectStatus::honoured,
           "8 bits and one all-to-all; DeepSpeed sends 4 bits, within nodes first");
  }
}

void DeepSpeedBuilder::build_stage3() {
  Strategy& s = out_.strategy;
  s.zero.prefetch_bucket_size =
      sized_by_hidden("prefetch_bucket_size", 2, 0.9, "0.9 * hidden * hidden");
  s.zero.param_persistence_threshold =
      sized_by_hidden("param_persistence_threshold", 1, 10.0, "10 * hidden");
  s.zero.model_persistence_threshold = integer(kZero + "model_persistence_threshold");
  s.zero.max_live_parameters = integer(kZero + "max_live_parameters");
  s.zero.max_reuse_distance = integer(kZero + "max_reuse_distance");
}

// "auto" is factor * hidden^power, as Hugging Face's integration resolves it.
std::int64_t DeepSpeedBuilder::sized_by_hidden(const char* name, int power, double factor,
                                               const char* formula) {
  if (context_.model == nullptr) return integer(kZero + name);
  const std::int64_t hidden = context_.model->hidden;
  const AutoRule rule{factor * std::pow(static_cast<double>(hidden), power),
                      std::string(formula) + ", model.hidden = " + std::to_string(hidden)};
  return integer(kZero + name, &rule);
}

DType DeepSpeedBuilder::parse_type(const std::string& path, DType fallback) {
  if (!is_set(path)) {
    const KeySpec* spec = find_key(path);
    record(path, name_of(fallback), EffectStatus::defaulted, "default: " + std::string(spec->why));
    return fallback;
  }
  return parse_dtype(text(path));
}

void DeepSpeedBuilder::build_precision() {
  Strategy& s = out_.strategy;
  bool half = boolean("fp16.enabled");
  bool brain = boolean("bf16.enabled");
  if (half && brain) {
    reject(given("bf16.enabled") ? "bf16.enabled" : "fp16.enabled",
           "fp16 and bf16 are both enabled; disable one");
  }
  const bool file_says = is_set("fp16.enabled") || is_set("bf16.enabled");
  const auto chosen =
      context_.precision || file_says ? context_.precision : context_.default_precision;
  if (chosen) {
    half = *chosen == DType::f16;
    brain = *chosen == DType::bf16;
    const std::string why =
        std::string(context_.precision ? "run.precision is " : "the default on this cluster is ") +
        name_of(*chosen);
    for (const auto& [path, value] : {std::pair{"fp16.enabled", half}, {"bf16.enabled", brain}}) {
      const bool agrees = is_set(path) && given(path)->value->get<bool>() == value;
      record(path, value, agrees ? EffectStatus::honoured : EffectStatus::defaulted, why);
    }
  }
  s.precision.compute_dtype = half ? DType::f16 : brain ? DType::bf16 : DType::f32;
  LossScalerConfig& scaler = s.loss_scaler;
  if (!half) {
    mark_unused("fp16.", "no effect: fp16 is off");
    return;
  }
  scaler.static_scale = number("fp16.loss_scale");
  scaler.initial_scale_power = integer("fp16.initial_scale_power");
  scaler.window = integer("fp16.loss_scale_window");
  scaler.hysteresis = integer("fp16.hysteresis");
  scaler.consecutive_hysteresis = boolean("fp16.consecutive_hysteresis");
  scaler.min_scale = number("fp16.min_loss_scale");
}

void DeepSpeedBuilder::build_gradients() {
  Strategy& s = out_.strategy;
  s.gradient_clipping = number("gradient_clipping");
  s.zero.prescale_gradients = boolean("prescale_gradients");
  s.zero.gradient_predivide_factor = number("gradient_predivide_factor");
  const std::string op = text("gradient_allreduce_op");
  s.zero.sum_gradients = op == "sum" || op == "SUM" || op == "Sum";
  if (s.zero.sum_gradients && s.zero.stage == 3) {
    reject("gradient_allreduce_op", "\"sum\" is not possible with stage 3; use \"mean\"");
  }
  s.precision.grad_accum_dtype = parse_type("data_types.grad_accum_dtype", DType::f32);
  s.precision.communication_dtype =
      parse_type("communication_data_type", s.precision.grad_accum_dtype);
  note_wide_gradients();
}

// DeepSpeed's default is the 16-bit type, and who compares wire bytes must know.
void DeepSpeedBuilder::note_wide_gradients() {
  const Strategy& s = out_.strategy;
  const bool wide =
      s.precision.compute_dtype != DType::f32 && s.precision.communication_dtype == DType::f32;
  if (!wide || s.zero.quantized_gradients || is_set("communication_data_type")) return;
  const std::string type = name_of(s.precision.compute_dtype);
  const std::string why = "gradients are reduced in fp32; \"" + type +
                          "\", DeepSpeed's default here, halves their bytes on the wire";
  record("communication_data_type", "fp32", EffectStatus::defaulted, "default: " + why);
  if (context_.ranks > 1 && is_set(type + ".enabled")) {
    out_.warnings.push_back("strategy.communication_data_type: " + why);
  }
}

namespace {

// Returns false for a text outside the grammar of x-zerolab.recompute.
bool parse_recompute(const std::string& text, RecomputeConfig& out) {
  const auto rest_after = [&text](const std::string& prefix) {
    return text.starts_with(prefix) ? text.substr(prefix.size()) : std::string();
  };
  if (text == "none") {
    out.mode = RecomputeMode::none;
  } else if (text == "full") {
    out.mode = RecomputeMode::full;
  } else if (text == "auto") {
    out.mode = RecomputeMode::automatic;
  } else if (const std::string every = rest_after("every:"); !every.empty()) {
    if (every.size() > 6 || every.find_first_not_of("0123456789") != std::string::npos)
      return false;
    out.mode = RecomputeMode::every_k;
    out.every = std::stoll(every);
    return out.every >= 1;
  } else if (const std::string parts = rest_after("selective:"); !parts.empty()) {
    out.mode = RecomputeMode::selective;
    out.attention = parts == "attention" || parts == "attention,mlp" || parts == "mlp,attention";
    out.activation = parts == "mlp" || parts == "attention,mlp" || parts == "mlp,attention";
    return out.attention || out.activation;
  } else {
    return false;
  }
  return true;
}

}  // namespace

void DeepSpeedBuilder::build_recompute() {
  RecomputeConfig& recompute = out_.strategy.recompute;
  const std::string path = "x-zerolab.recompute";
  const bool full = boolean("gradient_checkpointing");
  if (full && !is_set(path)) {
    recompute.mode = RecomputeMode::full;
    record("gradient_checkpointing", true, EffectStatus::honoured,
           "full recomputation of every transformer block; DeepSpeed itself ignores this key");
    record(path, "full", EffectStatus::defaulted, "gradient_checkpointing is true");
    return;
  }
  const std::string mode = text(path);
  if (!parse_recompute(mode, recompute)) {
    reject(path, "\"" + mode +
                     "\" is not one of none, full, every:K, selective:attention, selective:mlp, "
                     "selective:attention,mlp, auto");
  } else if (full && recompute.mode != RecomputeMode::full) {
    reject(path, "\"" + mode + "\" contradicts gradient_checkpointing: true; remove one");
  }
}

void DeepSpeedBuilder::build_checks() {
  const Strategy& s = out_.strategy;
  out_.strategy.deepspeed_scale_order = boolean("x-zerolab.deepspeed_scale_order");
  out_.strategy.precision.stochastic_rounding = boolean("x-zerolab.stochastic_rounding");
  const bool adam =
      s.optimizer.kind == OptimizerKind::adamw || s.optimizer.kind == OptimizerKind::adam;
  if (s.precision.stochastic_rounding && (s.precision.compute_dtype != DType::bf16 || !adam)) {
    reject("x-zerolab.stochastic_rounding", "true is for bf16 weights under AdamW or Adam");
  }
  if (is_set("vocabulary_size") && integer("vocabulary_size") % 8 != 0) {
    out_.warnings.push_back("strategy.vocabulary_size: " + given("vocabulary_size")->value->dump() +
                            " is not a multiple of 8, which matrix units prefer");
  }
  const std::string bucket = "zero_optimization.allgather_bucket_size";
  if (is_set(bucket) && whole_number(*given(bucket)->value).value_or(0) % 2 != 0) {
    reject(bucket, given(bucket)->value->dump() + " is odd; give an even number of elements");
  }
  if (s.optimizer.kind == OptimizerKind::lamb && s.loss_scaler.static_scale > 0) {
    reject("fp16.loss_scale", "LAMB needs the dynamic loss scale; write 0");
  }
  struct Pair {
    std::string old_key, new_key;
  };
  const std::string& zero = kZero;
  for (const Pair& pair : {Pair{zero + "cpu_offload", zero + "offload_optimizer.device"},
                           Pair{zero + "cpu_offload_param", zero + "offload_param.device"},
                           Pair{zero + "cpu_offload_params", zero + "offload_param.device"},
                           Pair{zero + "stage3_gather_fp16_weights_on_model_save",
                                zero + "gather_16bit_weights_on_model_save"}}) {
    if (given(pair.old_key) && given(pair.new_key)) {
      reject(pair.old_key, "deprecated, and its successor \"" + given(pair.new_key)->key +
                               "\" is given too; remove the old key");
    }
  }
}

}  // namespace zl
