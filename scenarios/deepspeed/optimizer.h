// The section optimizer.
// Ownership: values. Threads: pure functions of their keys.
#pragma once

#include "core/train/strategy.h"
#include "scenarios/deepspeed/release.h"

namespace zl {

OptimizerConfig build_optimizer(Keys& keys, const ImportContext& context, const Release& release);

// Rejects what the optimizer, where it is a one-bit one, cannot run with.
void check_onebit(Keys& keys, const Strategy& strategy);

}  // namespace zl
