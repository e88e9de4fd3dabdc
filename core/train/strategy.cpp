#include "core/train/strategy.h"

namespace zl {

std::string stage_conflict(const Strategy& strategy) {
  const OptimizerKind kind = strategy.optimizer.kind;
  if (!is_onebit(kind)) return {};
  const std::string stage = std::to_string(strategy.zero_stage);
  if (kind == OptimizerKind::onebit_adam) {
    if (strategy.zero_stage <= 1) return {};
    return stage +
           " does not go with 1-bit Adam, which needs each rank's own gradients whole; "
           "use stage 0 or 1";
  }
  if (strategy.zero_stage == 0) return {};
  return stage +
         " does not go with 0/1 Adam and 1-bit LAMB, whose ranks update all weights; use "
         "stage 0, or OneBitAdam with stage 1";
}

}  // namespace zl
