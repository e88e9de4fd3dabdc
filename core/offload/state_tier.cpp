#include "core/offload/state_tier.h"

#include "core/offload/resident_state.h"
#include "core/offload/swapped_state.h"

namespace zl {

std::unique_ptr<StateTier> make_state_tier(RankContext& context, const OffloadConfig& offload,
                                           const OptimizerConfig& optimizer,
                                           const std::vector<SubGroup>& groups) {
  if (offload.optimizer == Tier::nvme) {
    return std::make_unique<SwappedState>(context, offload, optimizer, groups);
  }
  return std::make_unique<ResidentState>(context, offload, optimizer, groups);
}

}  // namespace zl
