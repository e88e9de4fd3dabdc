#include "scenarios/files/strategy_json.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

#include "scenarios/deepspeed/fields.h"
#include "scenarios/deepspeed/keys.h"
#include "scenarios/deepspeed/parallel.h"
#include "scenarios/deepspeed/sparse_attention.h"

namespace zl {
namespace {

// A visitor for the lists of fields.h: writes the members into an object.
auto into(Json& object) {
  return [&object](const char* name, const auto& member) { object[name] = member; };
}

Json onebit_json(const OptimizerConfig& o, Json params) {
  if (o.kind == OptimizerKind::zero_one_adam) {
    fields::visit_zero_one_adam(o.onebit, into(params));
    return {{"type", "ZeroOneAdam"}, {"params", params}};
  }
  params["freeze_step"] = o.onebit.freeze_step;
  if (o.kind != OptimizerKind::onebit_lamb) return {{"type", "OneBitAdam"}, {"params", params}};
  fields::visit_lamb(o, into(params));
  fields::visit_onebit_lamb(o.onebit, into(params));
  return {{"type", "OneBitLamb"}, {"params", params}};
}

Json optimizer_json(const OptimizerConfig& o) {
  Json params;
  fields::visit_every_optimizer(o, into(params));
  if (o.kind == OptimizerKind::sgd) {
    fields::visit_sgd(o, into(params));
    return {{"type", "SGD"}, {"params", params}};
  }
  params["betas"] = {o.beta1, o.beta2};
  fields::visit_adam(o, into(params));
  if (o.kind == OptimizerKind::lamb) {
    fields::visit_lamb(o, into(params));
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
    fields::visit_warmup_ratios(s, into(params));
  } else {
    params["warmup_min_lr"] = s.warmup_min_lr;
    params["warmup_max_lr"] = s.warmup_max_lr;
  }
  if (s.kind != ScheduleKind::warmup_lr) params["total_num_steps"] = s.total_num_steps;
  return {{"type", type}, {"params", params}};
}

Json one_cycle_json(const ScheduleConfig& s) {
  Json params;
  fields::visit_one_cycle(s, into(params));
  // Only where it is said, and last: scenarios of before keep their hash.
  params.erase("cycle_second_step_size");
  if (s.cycle_second_step_size > 0) params["cycle_second_step_size"] = s.cycle_second_step_size;
  if (s.cycle_first_stair_count > 0 || s.cycle_second_stair_count > 0) {
    params["cycle_first_stair_count"] = s.cycle_first_stair_count;
    params["cycle_second_stair_count"] = s.cycle_second_stair_count;
  }
  return {{"type", "OneCycle"}, {"params", params}};
}

Json range_test_json(const ScheduleConfig& s) {
  Json params;
  fields::visit_range_test(s, into(params));
  return {{"type", "LRRangeTest"}, {"params", params}};
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
      return range_test_json(s);
    case ScheduleKind::exponential:
      return {{"type", "ExponentialLR"}, {"params", {{"gamma", s.gamma}}}};
  }
  return nullptr;
}

Json zero_json(const Strategy& s) {
  Json zero = {{"stage", s.zero.stage},
               {"overlap_comm", s.zero.overlap_comm},
               {"reduce_bucket_size", s.zero.reduce_bucket_size}};
  if (s.zero.quantized_weights) zero["zero_quantized_weights"] = true;
  if (s.zero.quantized_gradients) zero["zero_quantized_gradients"] = true;
  if (s.zero.secondary_partition > 1) {
    zero["zero_hpz_partition_size"] = s.zero.secondary_partition;
  }
  if (s.zero.stage == 3) fields::visit_stage3(s.zero, into(zero));
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
      fields::visit_pipelines(offload, into(section));
    }
  }
  if (offload.parameters != Tier::device) {
    Json& section = zero["offload_param"];
    section = {{"device", tier_name(offload.parameters)}, {"pin_memory", offload.pin_memory}};
    if (offload.parameters == Tier::nvme) {
      section["nvme_path"] = offload.nvme_path;
      fields::visit_parameter_files(offload, into(section));
    }
  }
  if (offload.activations) out["activation_checkpointing"] = {{"cpu_checkpointing", true}};
  if (offload.files()) fields::visit_aio(offload.aio, into(out["aio"]));
  if (offload.delayed_update_after >= 0) {
    out["x-zerolab"]["delayed_param_update"] = offload.delayed_update_after;
  }
}

// Top-level keys whose values follow from the run where the file does not give them.
constexpr std::array<std::string_view, 4> kOfTypes = {"fp16", "bf16", "data_types",
                                                      "communication_data_type"};
constexpr std::array<std::string_view, 3> kOfBatch = {
    "train_batch_size", "train_micro_batch_size_per_gpu", "gradient_accumulation_steps"};

Json fp16_json(const Strategy& s) {
  if (s.precision.compute_dtype != DType::f16) return {{"enabled", false}};
  Json fp16 = {{"enabled", true}};
  fields::visit_loss_scaler(s.loss_scaler, into(fp16));
  return fp16;
}

}  // namespace

Json strategy_to_json(const Strategy& s) {
  Json out;
  out["train_micro_batch_size_per_gpu"] = s.micro_batch;
  out["gradient_accumulation_steps"] = s.gradient_accumulation;
  out["gradient_clipping"] = s.gradient_clipping;
  fields::visit_scaling_of_gradients(s.zero, into(out));
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
  if (s.separate_tied_gradient) out["x-zerolab"]["tied_gradient"] = "separate";
  if (Json parallel = parallel_json(s); !parallel.is_null()) {
    out["x-zerolab"]["parallel"] = std::move(parallel);
  }
  add_sparse_attention(s.sparse_attention, out);
  add_offload(s.offload, out);
  if (s.optimizer.kind == OptimizerKind::onebit_adam) {
    out["x-zerolab"]["deepspeed_compat"] = s.optimizer.onebit.deepspeed_compat;
    fields::visit_automatic_freeze(s.optimizer.onebit, into(out["x-zerolab"]));
  }
  return out;
}

Json strategy_file_json(const ImportedStrategy& imported, bool with_batch) {
  Json out = strategy_to_json(imported.strategy);
  for (const std::string_view key : kOfTypes) out.erase(std::string(key));
  for (const std::string_view key : kOfBatch) {
    if (!with_batch) out.erase(std::string(key));
  }
  for (const Effect& effect : imported.effects) {
    const std::string path = canonical_path(effect.key);
    const KeySpec* spec = find_key(path);
    if (effect.given.empty() || spec == nullptr || spec->handling != Handling::applied) continue;
    const std::string_view section = std::string_view(path).substr(0, path.find('.'));
    const bool of_batch = std::count(kOfBatch.begin(), kOfBatch.end(), section) > 0;
    const bool of_types = std::count(kOfTypes.begin(), kOfTypes.end(), section) > 0;
    const bool is_auto = effect.given == "\"auto\"" && !of_batch;
    if (is_auto || of_types || (of_batch && !with_batch) || path == "x-zerolab.deepspeed_version") {
      std::string pointer = "/" + path;
      std::replace(pointer.begin(), pointer.end(), '.', '/');
      out[Json::json_pointer(pointer)] = Json::parse(effect.given);
    }
  }
  return out;
}

namespace {

std::string blocks_text(const RecomputeConfig& recompute) {
  if (recompute.stage_blocks.empty()) return std::to_string(recompute.blocks);
  std::string text;
  for (const std::int64_t each : recompute.stage_blocks) {
    text += (text.empty() ? "" : ",") + std::to_string(each);
  }
  return text;
}

}  // namespace

std::string recompute_text(const RecomputeConfig& recompute) {
  switch (recompute.mode) {
    case RecomputeMode::none:
      return "none";
    case RecomputeMode::full:
      return "full";
    case RecomputeMode::every_k:
      return "every:" + std::to_string(recompute.every);
    case RecomputeMode::selective:
      if (recompute.products) return "selective:products";
      return std::string("selective:") + (recompute.attention ? "attention" : "") +
             (recompute.attention && recompute.activation ? "," : "") +
             (recompute.activation ? "mlp" : "");
    case RecomputeMode::automatic:
      return "auto";
    case RecomputeMode::first_blocks:
      return "blocks:" + blocks_text(recompute);
  }
  return "none";
}

std::string decided_recompute_text(RecomputeConfig recompute) {
  std::string text = recompute_text(recompute);
  if (recompute.mode != RecomputeMode::automatic) return text;
  recompute.mode = RecomputeMode::first_blocks;
  return text + ", " + recompute_text(recompute);
}

}  // namespace zl
