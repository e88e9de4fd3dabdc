// The offload sections: offload_optimizer, offload_param, aio, cpu_checkpointing.
// Ownership: values. Threads: pure functions of their keys.
#pragma once

#include "core/train/strategy.h"
#include "scenarios/deepspeed/values.h"

namespace zl {

// After stage, recomputation and optimizer; what these leave without effect is said.
OffloadConfig build_offload(Keys& keys, const Strategy& strategy);

// Rejects or refuses what check_offload of the core finds, unless something is rejected already.
void check_offload_keys(Keys& keys, const Strategy& strategy);

}  // namespace zl
