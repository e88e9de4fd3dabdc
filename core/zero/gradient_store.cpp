#include "core/zero/gradient_store.h"

#include "core/zero/replicated_gradients.h"
#include "core/zero/sharded_gradients.h"

namespace zl {

std::unique_ptr<GradientStore> make_gradient_store(RankContext& context, const Strategy& strategy,
                                                   const ParameterTable& table,
                                                   const Partition& partition) {
  if (strategy.zero_stage < 2) {
    return std::make_unique<ReplicatedGradients>(context, strategy, table, partition);
  }
  return std::make_unique<ShardedGradients>(context, strategy, table, partition);
}

}  // namespace zl
