// fp16, bf16 and the types and the reduction of gradients.
// Ownership: values. Threads: pure functions of their keys.
#pragma once

#include "core/train/strategy.h"
#include "scenarios/deepspeed/release.h"

namespace zl {

// Fills in strategy.precision.compute_dtype and strategy.loss_scaler.
void build_precision(Keys& keys, const ImportContext& context, Strategy& strategy);

// Fills in gradient_clipping, the other types of strategy.precision, and how strategy.zero reduces;
// after zero.stage and the compute type.
void build_gradients(Keys& keys, const ImportContext& context, const Release& release,
                     Strategy& strategy);

}  // namespace zl
