#include "scenarios/deepspeed/offload.h"

#include <algorithm>
#include <cctype>
#include <nlohmann/json.hpp>

#include "core/base/error.h"
#include "core/base/text.h"
#include "core/device/storage.h"
#include "core/offload/swapped_state.h"
#include "scenarios/deepspeed/fields.h"

namespace zl {
namespace {

using fields::kZero;
const std::string kOptimizer = kZero + "offload_optimizer.";
const std::string kParameters = kZero + "offload_param.";

Tier tier_of(std::string name) {
  std::transform(name.begin(), name.end(), name.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return name == "cpu" ? Tier::cpu : name == "nvme" ? Tier::nvme : Tier::device;
}

// The section's device, or what a deprecated boolean means.
Tier read_tier(Keys& keys, const std::string& section, const std::vector<std::string>& old_keys) {
  for (const std::string& old_key : old_keys) {
    if (keys.given(kZero + old_key) && keys.boolean(kZero + old_key)) {
      keys.effects().record(section + "device", "cpu", EffectStatus::defaulted,
                            old_key + " is true");
      return Tier::cpu;
    }
  }
  return tier_of(keys.text(section + "device"));
}

// Accepted, as DeepSpeed does, and said to be in vain.
void ignore(Keys& keys, const std::string& path, const Json& effective, const std::string& why) {
  keys.effects().record(path, effective, EffectStatus::honoured, "no effect: " + why);
  keys.effects().warn_ignored(path, why);
}

void build_activation_tier(Keys& keys, const RecomputeConfig& recompute, OffloadConfig& offload) {
  const std::string path = "activation_checkpointing.cpu_checkpointing";
  offload.activations = keys.boolean(path);
  const RecomputeMode mode = recompute.mode;
  if (!offload.activations) return;
  if (mode == RecomputeMode::none || mode == RecomputeMode::selective) {
    offload.activations = false;
    ignore(keys, path, false,
           "there are no checkpointed block inputs to offload; recompute whole blocks "
           "(gradient_checkpointing: true)");
  }
}

// The tiers that the stage has a use for.
void build_tiers(Keys& keys, int stage, OffloadConfig& offload) {
  offload.optimizer = read_tier(keys, kOptimizer, {"cpu_offload"});
  offload.parameters = read_tier(keys, kParameters, {"cpu_offload_param", "cpu_offload_params"});
  const std::string found = ", not " + std::to_string(stage);
  if (offload.optimizer != Tier::device && stage == 0) {
    offload.optimizer = Tier::device;
    ignore(keys, kOptimizer + "device", "none", "offloading needs stage 1, 2 or 3" + found);
  }
  if (offload.parameters != Tier::device && stage != 3) {
    offload.parameters = Tier::device;
    ignore(keys, kParameters + "device", "none", "only stage 3 offloads weights" + found);
  }
}

void build_host_step(Keys& keys, const OptimizerConfig& optimizer, OffloadConfig& offload) {
  if (offload.optimizer == Tier::device) {
    keys.effects().mark_unused(kOptimizer, "no effect: offload_optimizer.device is \"none\"");
    keys.effects().mark_unused(kZero + "sub_group_size",
                               "no effect: each rank steps its whole partition at once");
    keys.effects().mark_unused(kZero + "cpu_offload_use_pin_memory",
                               "no effect: nothing is offloaded");
    return;
  }
  offload.pin_memory = keys.is_set(kZero + "cpu_offload_use_pin_memory")
                           ? keys.boolean(kZero + "cpu_offload_use_pin_memory")
                           : keys.boolean(kOptimizer + "pin_memory");
  offload.sub_group_size = keys.integer(kZero + "sub_group_size");
  offload.ratio = keys.number(kOptimizer + "ratio");
  const std::string delay = "x-zerolab.delayed_param_update";
  if (keys.is_set(delay)) offload.delayed_update_after = keys.integer(delay);
  if (offload.optimizer != Tier::nvme) {
    for (const char* name : {"nvme_path", "buffer_count", "pipeline_read", "pipeline_write"}) {
      keys.effects().mark_unused(kOptimizer + name,
                                 "no effect: offload_optimizer.device is \"cpu\"");
    }
    return;
  }
  offload.nvme_path = keys.text(kOptimizer + "nvme_path");
  fields::visit_pipelines(offload, reading(keys, kOptimizer));
  const std::string count = kOptimizer + "buffer_count";
  const std::int64_t asked = keys.integer(count);
  offload.optimizer_buffer_count = asked;
  const std::size_t tensors = 1u + has_first_moment(optimizer) + has_second_moment(optimizer);
  const std::size_t made = buffer_sets(offload, tensors) * tensors;
  if (static_cast<std::int64_t>(made) == asked) return;
  keys.effects().record(
      count, made, EffectStatus::defaulted,
      "one update needs " + std::to_string(tensors) + " buffers, pipelined transfers twice that");
}

void build_parameter_tier(Keys& keys, OffloadConfig& offload) {
  if (offload.parameters == Tier::device) {
    keys.effects().mark_unused(kParameters, "no effect: offload_param.device is \"none\"");
    return;
  }
  const bool pinned = keys.boolean(kParameters + "pin_memory");
  if (pinned != offload.pin_memory) {
    keys.effects().record(kParameters + "pin_memory", offload.pin_memory, EffectStatus::defaulted,
                          "all host memory of a run is of one kind, the optimizer's");
  }
  if (offload.parameters != Tier::nvme) {
    for (const char* name : {"nvme_path", "buffer_count", "buffer_size", "max_in_cpu"}) {
      keys.effects().mark_unused(kParameters + name, "no effect: offload_param.device is \"cpu\"");
    }
    return;
  }
  const std::string path = keys.text(kParameters + "nvme_path");
  if (offload.optimizer == Tier::nvme && path != offload.nvme_path && !path.empty()) {
    keys.effects().reject(kParameters + "nvme_path",
                          "\"" + shortened(path) + "\" is not offload_optimizer's \"" +
                              shortened(offload.nvme_path) + "\"; give one folder");
  }
  if (!path.empty()) offload.nvme_path = path;
  fields::visit_parameter_files(offload, reading(keys, kParameters));
}

void build_aio(Keys& keys, AioConfig& aio) {
  fields::visit_aio(aio, reading(keys, "aio."));
  if (aio.block_size % ObjectLayout::kPage != 0) {
    keys.effects().reject("aio.block_size",
                          std::to_string(aio.block_size) + " is not a multiple of 4096");
  }
}

}  // namespace

OffloadConfig build_offload(Keys& keys, const Strategy& strategy) {
  OffloadConfig offload;
  build_tiers(keys, strategy.zero.stage, offload);
  build_activation_tier(keys, strategy.recompute, offload);
  build_host_step(keys, strategy.optimizer, offload);
  build_parameter_tier(keys, offload);
  if (offload.files()) {
    build_aio(keys, offload.aio);
  } else {
    keys.effects().mark_unused("aio.", "no effect: nothing is offloaded to nvme");
  }
  return offload;
}

void check_offload_keys(Keys& keys, const Strategy& strategy) {
  if (keys.effects().any_rejected()) return;
  const OffloadConfig& offload = strategy.offload;
  if (offload.parameters != Tier::device && offload.optimizer == Tier::device) {
    keys.effects().refuse(kParameters + "device",
                          "weights on the host are updated there; set offload_optimizer.device to "
                          "\"cpu\" or \"nvme\" too");
    return;
  }
  try {
    check_offload(strategy);
  } catch (const Error& error) {
    const std::string what = error.what();
    const std::size_t colon = what.find(": ");
    keys.effects().reject(what.substr(0, colon), what.substr(colon + 2));
  }
}

}  // namespace zl
