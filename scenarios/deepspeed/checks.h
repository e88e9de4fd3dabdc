// What concerns several sections: zerolab's own switches, and keys that contradict each other.
// Ownership: none. Threads: used by one thread.
#pragma once

#include "core/train/strategy.h"
#include "scenarios/deepspeed/values.h"

namespace zl {

// Fills in deepspeed_scale_order and precision.stochastic_rounding; after all sections.
void build_checks(Keys& keys, Strategy& strategy);

}  // namespace zl
