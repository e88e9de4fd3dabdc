// What leaves the device, and where to. Names and defaults are DeepSpeed's.
// Ownership: a value. Threads: immutable while a run uses it.
#pragma once

#include <cstdint>
#include <string>

#include "core/device/storage.h"

namespace zl {

// A tier of memory, fastest and smallest first.
enum class Tier : std::uint8_t { device, cpu, nvme };

// What leaves the device (ZeRO-Offload, Ren et al. 2021; ZeRO-Infinity, Rajbhandari et al. 2021).
// Names and defaults are DeepSpeed's; sizes count elements of this rank's shard.
struct OffloadConfig {
  Tier optimizer = Tier::device;   // stages 1-3: state, update and reduced gradients
  Tier parameters = Tier::device;  // stage 3: the weight shards
  bool activations = false;        // the kept inputs of recomputed blocks, to the host
  bool pin_memory = true;          // host memory that devices copy at full speed
  std::string nvme_path;           // folder of the file tier
  AioConfig aio;

  std::int64_t sub_group_size = 1'000'000'000;  // what one host update covers
  double ratio = 1.0;  // share of the sub-groups stepped on the host; the first ones stay
  std::int64_t optimizer_buffer_count = 4;  // nvme: of one tensor of the largest sub-group each
  bool pipeline_read = false, pipeline_write = false;
  // ZeRO-Offload's one-step delayed parameter update, from this step on (-1: never): the host
  // update of step i overlaps the forward and backward of step i + 1.
  std::int64_t delayed_update_after = -1;

  std::int64_t parameter_buffer_count = 5;  // nvme: buffers of parameter_buffer_size elements
  std::int64_t parameter_buffer_size = 100'000'000;
  std::int64_t max_in_cpu = 1'000'000'000;  // nvme: weights that stay in host memory all the same

  bool any() const {
    return optimizer != Tier::device || parameters != Tier::device || activations;
  }
  bool files() const { return optimizer == Tier::nvme || parameters == Tier::nvme; }

  bool operator==(const OffloadConfig&) const = default;
};

}  // namespace zl
