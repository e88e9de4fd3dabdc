// gradient_checkpointing and x-zerolab.recompute.
// Ownership: values. Threads: pure function of its keys.
#pragma once

#include "core/model/recompute_config.h"
#include "scenarios/deepspeed/values.h"

namespace zl {

RecomputeConfig build_recompute(Keys& keys);

}  // namespace zl
