#include "scenarios/files/strategy_file.h"
#include "core/base/files.h"

#include <filesystem>
#include <nlohmann/json.hpp>

#include "scenarios/files/catalog.h"

namespace zl {
namespace {

Json onebit_json(const OptimizerConfig& o, Json params) {
  if (o.kind == OptimizerKind::zero_one_adam) {
    params["var_freeze_step"] = o.onebit.var_freeze_step;
    params["var_update_scaler"] = o.onebit.var_update_scaler;
    params["local_step_scaler"] = o.onebit.local_step_scaler;
    params["local_step_clipper"] = o.onebit.local_step_clipper;
    return {{"type", "ZeroOneAdam"}, {"params", params}};
  }
  params["freeze_step"] = o.onebit.freeze_step;
  if (o.kind == OptimizerKind::onebit_lamb) {
    params["max_coeff"] = o.lamb_max_trust;
    params["min_coeff"] = o.lamb_min_trust;
    params["coeff_beta"] = o.onebit.coeff_beta;
    params["factor_max"] = o.onebit.factor_max;
    params["factor_min"] = o.onebit.factor_min;
    params["factor_threshold"] = o.onebit.factor_threshold;
    return {{"type", "OneBitLamb"}, {"params", params}};
  }
  return {{"type", "OneBitAdam"}, {"params", params}};
}

Json optimizer_json(const OptimizerConfig& o) {
  Json params = {{"lr", o.lr}, {"weight_decay", o.weight_decay}};
  if (o.kind == OptimizerKind::sgd) {
    params["momentum"] = o.momentum;
    params["nesterov"] = o.nesterov;
    return {{"type", "SGD"}, {"params", params}};
  }
  params["betas"] = {o.beta1, o.beta2};
  params["eps"] = o.epsilon;
  params["bias_correction"] = o.bias_correction;
  if (o.kind == OptimizerKind::lamb) {
    params["max_coeff"] = o.lamb_max_trust;
    params["min_coeff"] = o.lamb_min_trust;
    return {{"type", "Lamb"}, {"params", params}};
  }
  if (is_onebit(o.kind)) return onebit_json(o, std::move(params));
  const bool decoupled = o.kind == OptimizerKind::adamw;
  params["adam_w_mode"] = decoupled;
  return {{"type", decoupled ? "AdamW" : "Adam"}, {"params", params}};
}

Json warmup_json(const ScheduleConfig& s, const char* type) {
  Json params = {{"warmup_num_steps", s.warmup_num_steps},
                 {"warmup_type", s.warmup_log ? "log" : "linear"}};
  if (s.kind == ScheduleKind::warmup_cosine_lr) {
    params["warmup_min_ratio"] = s.warmup_min_ratio;
    params["cos_min_ratio"] = s.cos_min_ratio;
  } else {
    params["warmup_min_lr"] = s.warmup_min_lr;
    params["warmup_max_lr"] = s.warmup_max_lr;
  }
  if (s.kind != ScheduleKind::warmup_lr) params["total_num_steps"] = s.total_num_steps;
  return {{"type", type}, {"params", params}};
}

Json one_cycle_json(const ScheduleConfig& s) {
  Json params = {
      {"cycle_min_lr", s.cycle_min_lr},       {"cycle_max_lr", s.cycle_max_lr},
      {"decay_lr_rate", s.decay_lr_rate},     {"cycle_first_step_size", s.cycle_first_step_size},
      {"decay_step_size", s.decay_step_size}, {"cycle_momentum", s.cycle_momentum},
      {"cycle_min_mom", s.cycle_min_mom},     {"cycle_max_mom", s.cycle_max_mom},
      {"decay_mom_rate", s.decay_mom_rate}};
  if (s.cycle_second_step_size > 0) params["cycle_second_step_size"] = s.cycle_second_step_size;
  return {{"type", "OneCycle"}, {"params", params}};
}

Json schedule_json(const ScheduleConfig& s) {
  switch (s.kind) {
    case ScheduleKind::constant:
      return nullptr;
    case ScheduleKind::warmup_lr:
      return warmup_json(s, "WarmupLR");
    case ScheduleKind::warmup_decay_lr:
      return warmup_json(s, "WarmupDecayLR");
    case ScheduleKind::warmup_cosine_lr:
      return warmup_json(s, "WarmupCosineLR");
    case ScheduleKind::one_cycle:
      return one_cycle_json(s);
    case ScheduleKind::lr_range_test:
      return {{"type", "LRRangeTest"},
              {"params",
               {{"lr_range_test_min_lr", s.lr_range_test_min_lr},
                {"lr_range_test_step_size", s.lr_range_test_step_size},
                {"lr_range_test_step_rate", s.lr_range_test_step_rate},
                {"lr_range_test_staircase", s.lr_range_test_staircase}}}};
  }
  return nullptr;
}

Json zero_json(const Strategy& s) {
  Json zero = {{"stage", s.zero.stage},
               {"overlap_comm", s.zero.overlap_comm},
               {"reduce_bucket_size", s.zero.reduce_bucket_size}};
  if (s.zero.quantized_weights) zero["zero_quantized_weights"] = true;
  if (s.zero.quantized_gradients) zero["zero_quantized_gradients"] = true;
  if (s.zero.stage == 3) {
    zero["prefetch_bucket_size"] = s.zero.prefetch_bucket_size;
    zero["param_persistence_threshold"] = s.zero.param_persistence_threshold;
    zero["model_persistence_threshold"] = s.zero.model_persistence_threshold;
    zero["max_live_parameters"] = s.zero.max_live_parameters;
    zero["max_reuse_distance"] = s.zero.max_reuse_distance;
  }
  return zero;
}

const char* tier_name(Tier tier) {
  return tier == Tier::cpu ? "cpu" : tier == Tier::nvme ? "nvme" : "none";
}

// Adds what is offloaded to the JSON of a strategy.
void add_offload(const OffloadConfig& offload, Json& out) {
  if (!offload.any()) return;
  Json& zero = out["zero_optimization"];
  if (offload.optimizer != Tier::device) {
    zero["sub_group_size"] = offload.sub_group_size;
    Json& section = zero["offload_optimizer"];
    section = {{"device", tier_name(offload.optimizer)},
               {"pin_memory", offload.pin_memory},
               {"ratio", offload.ratio}};
    if (offload.optimizer == Tier::nvme) {
      section["nvme_path"] = offload.nvme_path;
      section["buffer_count"] = offload.optimizer_buffer_count;
      section["pipeline_read"] = offload.pipeline_read;
      section["pipeline_write"] = offload.pipeline_write;
    }
  }
  if (offload.parameters != Tier::device) {
    Json& section = zero["offload_param"];
    section = {{"device", tier_name(offload.parameters)}, {"pin_memory", offload.pin_memory}};
    if (offload.parameters == Tier::nvme) {
      section["nvme_path"] = offload.nvme_path;
      section["buffer_count"] = offload.parameter_buffer_count;
      section["buffer_size"] = offload.parameter_buffer_size;
      section["max_in_cpu"] = offload.max_in_cpu;
    }
  }
  if (offload.activations) out["activation_checkpointing"] = {{"cpu_checkpointing", true}};
  if (offload.files()) {
    out["aio"] = {{"block_size", offload.aio.block_size},
                  {"queue_depth", offload.aio.queue_depth},
                  {"intra_op_parallelism", offload.aio.threads},
                  {"single_submit", offload.aio.single_submit},
                  {"overlap_events", offload.aio.overlap_events}};
  }
  if (offload.delayed_update_after >= 0) {
    out["x-zerolab"]["delayed_param_update"] = offload.delayed_update_after;
  }
}

Json fp16_json(const Strategy& s) {
  if (s.precision.compute_dtype != DType::f16) return {{"enabled", false}};
  return {{"enabled", true},
          {"loss_scale", s.loss_scaler.static_scale},
          {"initial_scale_power", s.loss_scaler.initial_scale_power},
          {"loss_scale_window", s.loss_scaler.window},
          {"hysteresis", s.loss_scaler.hysteresis},
          {"consecutive_hysteresis", s.loss_scaler.consecutive_hysteresis},
          {"min_loss_scale", s.loss_scaler.min_scale}};
}

struct StrategyText {
  std::string text, source;
};

StrategyText read_strategy(const std::string& name_or_path) {
  if (!catalog_has("strategies", name_or_path) && std::filesystem::is_regular_file(name_or_path)) {
    return {read_file(name_or_path), name_or_path};
  }
  return {std::string(catalog_text("strategies", name_or_path)),
          catalog_canonical_name("strategies", name_or_path)};
}

}  // namespace

ImportedStrategy load_strategy(const std::string& name_or_path, const ImportContext& context) {
  const StrategyText file = read_strategy(name_or_path);
  return import_deepspeed(file.text, file.source, context);
}

ImportedStrategy inspect_strategy(const std::string& name_or_path, const ImportContext& context) {
  const StrategyText file = read_strategy(name_or_path);
  return inspect_deepspeed(file.text, file.source, context);
}

Json strategy_to_json(const Strategy& s) {
  Json out;
  out["train_micro_batch_size_per_gpu"] = s.micro_batch;
  out["gradient_accumulation_steps"] = s.gradient_accumulation;
  out["gradient_clipping"] = s.gradient_clipping;
  out["prescale_gradients"] = s.zero.prescale_gradients;
  out["gradient_predivide_factor"] = s.zero.gradient_predivide_factor;
  out["gradient_allreduce_op"] = s.zero.sum_gradients ? "sum" : "mean";
  out["communication_data_type"] = name_of(s.precision.communication_dtype);
  out["data_types"] = {{"grad_accum_dtype", name_of(s.precision.grad_accum_dtype)}};
  out["fp16"] = fp16_json(s);
  out["bf16"] = {{"enabled", s.precision.compute_dtype == DType::bf16}};
  out["optimizer"] = optimizer_json(s.optimizer);
  if (s.schedule.kind != ScheduleKind::constant) out["scheduler"] = schedule_json(s.schedule);
  out["zero_optimization"] = zero_json(s);
  out["x-zerolab"] = {{"name", s.name},
                      {"recompute", recompute_text(s.recompute)},
                      {"stochastic_rounding", s.precision.stochastic_rounding},
                      {"deepspeed_scale_order", s.deepspeed_scale_order}};
  add_offload(s.offload, out);
  if (s.optimizer.kind == OptimizerKind::onebit_adam) {
    out["x-zerolab"]["deepspeed_compat"] = s.optimizer.onebit.deepspeed_compat;
    out["x-zerolab"]["automatic_freeze"] = s.optimizer.onebit.automatic_freeze;
    out["x-zerolab"]["variance_stability"] = s.optimizer.onebit.variance_stability;
  }
  return out;
}

std::string recompute_text(const RecomputeConfig& recompute) {
  switch (recompute.mode) {
    case RecomputeMode::none:
      return "none";
    case RecomputeMode::full:
      return "full";
    case RecomputeMode::every_k:
      return "every:" + std::to_string(recompute.every);
    case RecomputeMode::selective:
      return std::string("selective:") + (recompute.attention ? "attention" : "") +
             (recompute.attention && recompute.activation ? "," : "") +
             (recompute.activation ? "mlp" : "");
    case RecomputeMode::automatic:
      return "auto";
  }
  return "none";
}

}  // namespace zl
