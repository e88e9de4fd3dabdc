// The offload sections: offload_optimizer, offload_param, aio, cpu_checkpointing (SPECS 1.3 and 4).
#include <algorithm>
#include <cctype>
#include <nlohmann/json.hpp>

#include "core/device/storage.h"
#include "core/offload/swapped_state.h"
#include "scenarios/deepspeed/builder.h"

namespace zl {
namespace {

const std::string kZero = "zero_optimization.";
const std::string kOptimizer = kZero + "offload_optimizer.";
const std::string kParameters = kZero + "offload_param.";

Tier tier_of(std::string name) {
  std::transform(name.begin(), name.end(), name.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return name == "cpu" ? Tier::cpu : name == "nvme" ? Tier::nvme : Tier::device;
}

}  // namespace

// The section's device, or what a deprecated boolean means.
Tier DeepSpeedBuilder::tier(const std::string& section, const std::vector<std::string>& old_keys) {
  for (const std::string& old_key : old_keys) {
    if (given(kZero + old_key) && boolean(kZero + old_key)) {
      record(section + "device", "cpu", EffectStatus::defaulted, old_key + " is true");
      return Tier::cpu;
    }
  }
  return tier_of(text(section + "device"));
}

void DeepSpeedBuilder::build_offload() {
  OffloadConfig& offload = out_.strategy.offload;
  offload.optimizer = tier(kOptimizer, {"cpu_offload"});
  offload.parameters = tier(kParameters, {"cpu_offload_param", "cpu_offload_params"});
  build_activation_tier();
  build_host_step();
  build_parameter_tier();
  if (offload.files()) {
    build_aio();
  } else {
    mark_unused("aio.", "no effect: nothing is offloaded to nvme");
  }
  if (!out_.rejections.empty()) return;
  try {
    check_offload(out_.strategy);
  } catch (const Error& error) {
    const std::string what = error.what();
    const std::size_t colon = what.find(": ");
    reject(what.substr(0, colon), what.substr(colon + 2));
  }
}

void DeepSpeedBuilder::build_activation_tier() {
  const std::string path = "activation_checkpointing.cpu_checkpointing";
  OffloadConfig& offload = out_.strategy.offload;
  offload.activations = boolean(path);
  const RecomputeMode mode = out_.strategy.recompute.mode;
  if (!offload.activations) return;
  if (mode == RecomputeMode::none || mode == RecomputeMode::selective) {
    reject(path,
           "there are no checkpointed block inputs to offload; recompute whole blocks "
           "(gradient_checkpointing: true)");
  }
}

void DeepSpeedBuilder::build_host_step() {
  OffloadConfig& offload = out_.strategy.offload;
  if (offload.optimizer == Tier::device) {
    mark_unused(kOptimizer, "no effect: offload_optimizer.device is \"none\"");
    mark_unused(kZero + "sub_group_size", "no effect: each rank steps its whole partition at once");
    mark_unused(kZero + "cpu_offload_use_pin_memory", "no effect: nothing is offloaded");
    return;
  }
  offload.pin_memory = is_set(kZero + "cpu_offload_use_pin_memory")
                           ? boolean(kZero + "cpu_offload_use_pin_memory")
                           : boolean(kOptimizer + "pin_memory");
  offload.sub_group_size = integer(kZero + "sub_group_size");
  offload.ratio = number(kOptimizer + "ratio");
  const std::string delay = "x-zerolab.delayed_param_update";
  if (is_set(delay)) offload.delayed_update_after = integer(delay);
  if (offload.optimizer != Tier::nvme) {
    for (const char* name : {"nvme_path", "buffer_count", "pipeline_read", "pipeline_write"}) {
      mark_unused(kOptimizer + name, "no effect: offload_optimizer.device is \"cpu\"");
    }
    return;
  }
  offload.nvme_path = text(kOptimizer + "nvme_path");
  offload.pipeline_read = boolean(kOptimizer + "pipeline_read");
  offload.pipeline_write = boolean(kOptimizer + "pipeline_write");
  const std::string count = kOptimizer + "buffer_count";
  const std::int64_t asked = integer(count);
  offload.optimizer_buffer_count = asked;
  const std::size_t tensors =
      1u + has_first_moment(out_.strategy.optimizer) + has_second_moment(out_.strategy.optimizer);
  const std::size_t made = buffer_sets(offload, tensors) * tensors;
  if (static_cast<std::int64_t>(made) == asked) return;
  record(
      count, made, EffectStatus::defaulted,
      "one update needs " + std::to_string(tensors) + " buffers, pipelined transfers twice that");
}

void DeepSpeedBuilder::build_parameter_tier() {
  OffloadConfig& offload = out_.strategy.offload;
  if (offload.parameters == Tier::device) {
    mark_unused(kParameters, "no effect: offload_param.device is \"none\"");
    return;
  }
  const bool pinned = boolean(kParameters + "pin_memory");
  if (pinned != offload.pin_memory) {
    record(kParameters + "pin_memory", offload.pin_memory, EffectStatus::defaulted,
           "all host memory of a run is of one kind, the optimizer's");
  }
  if (offload.parameters != Tier::nvme) {
    for (const char* name : {"nvme_path", "buffer_count", "buffer_size", "max_in_cpu"}) {
      mark_unused(kParameters + name, "no effect: offload_param.device is \"cpu\"");
    }
    return;
  }
  const std::string path = text(kParameters + "nvme_path");
  if (offload.optimizer == Tier::nvme && path != offload.nvme_path && !path.empty()) {
    reject(kParameters + "nvme_path", "\"" + path + "\" is not offload_optimizer's \"" +
                                          offload.nvme_path + "\"; give one folder");
  }
  if (!path.empty()) offload.nvme_path = path;
  offload.parameter_buffer_count = integer(kParameters + "buffer_count");
  offload.parameter_buffer_size = integer(kParameters + "buffer_size");
  offload.max_in_cpu = integer(kParameters + "max_in_cpu");
}

void DeepSpeedBuilder::build_aio() {
  AioConfig& aio = out_.strategy.offload.aio;
  aio.block_size = integer("aio.block_size");
  aio.queue_depth = integer("aio.queue_depth");
  aio.threads = integer("aio.intra_op_parallelism");
  aio.single_submit = boolean("aio.single_submit");
  aio.overlap_events = boolean("aio.overlap_events");
  if (aio.block_size % ObjectLayout::kPage != 0) {
    reject("aio.block_size", std::to_string(aio.block_size) + " is not a multiple of 4096");
  }
}

}  // namespace zl
