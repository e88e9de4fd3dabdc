#include "core/offload/state_tier.h"

#include "core/offload/resident_state.h"
#include "core/offload/swapped_state.h"

namespace zl {

std::unique_ptr<StateTier> make_state_tier(RankContext& context, const Strategy& strategy,
                                           const std::vector<SubGroup>& groups) {
  if (strategy.offload.optimizer == Tier::nvme) {
    return std::make_unique<SwappedState>(context, strategy, groups);
  }
  return std::make_unique<ResidentState>(context, strategy, groups);
}

}  // namespace zl
