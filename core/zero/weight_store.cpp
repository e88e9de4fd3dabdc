#include "core/zero/weight_store.h"

#include "core/zero/replicated_weights.h"
#include "core/zero/sharded_weights.h"

namespace zl {

std::unique_ptr<WeightStore> make_weight_store(RankContext& context, const StoreConfig& config,
                                               const ParameterTable& table,
                                               const Partition& partition,
                                               const std::vector<Visit>& visits) {
  if (config.zero.stage < 3) {
    return std::make_unique<ReplicatedWeights>(context, config, table, partition);
  }
  return std::make_unique<ShardedWeights>(context, config, table, partition, visits);
}

}  // namespace zl
