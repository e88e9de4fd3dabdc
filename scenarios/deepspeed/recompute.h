// gradient_checkpointing and x-zerolab.recompute.
// Ownership: values. Threads: pure function of its keys.
#pragma once

#include "core/train/strategy.h"
#include "scenarios/deepspeed/values.h"

namespace zl {

RecomputeConfig build_recompute(Keys& keys);

// Whether there are as many numbers of blocks as stages.
void check_recompute(Keys& keys, const Strategy& strategy);

}  // namespace zl
