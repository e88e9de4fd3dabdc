#include "core/zero/gradient_store.h"

#include "core/zero/replicated_gradients.h"
#include "core/zero/sharded_gradients.h"

namespace zl {

std::unique_ptr<GradientStore> make_gradient_store(RankContext& context, const StoreConfig& config,
                                                   const ParameterTable& table,
                                                   const Partition& partition) {
  if (config.zero.stage < 2) {
    return std::make_unique<ReplicatedGradients>(context, config, table, partition);
  }
  return std::make_unique<ShardedGradients>(context, config, table, partition);
}

}  // namespace zl
