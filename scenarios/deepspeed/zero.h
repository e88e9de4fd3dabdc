// The section zero_optimization but for offload: stage, buckets, what stays gathered, ZeRO++.
// Ownership: values. Threads: pure function of its keys.
#pragma once

#include "core/zero/zero_config.h"
#include "scenarios/deepspeed/values.h"

namespace zl {

// How gradients are reduced is of precision.h.
ZeroConfig build_zero(Keys& keys, const ImportContext& context);

}  // namespace zl
