#include "core/zero/weight_store.h"

#include "core/zero/replicated_weights.h"
#include "core/zero/sharded_weights.h"

namespace zl {

void draw_initial(RankContext& context, const ParameterSpec& spec, int parameter,
                  std::uint64_t seed, std::int64_t begin, const TensorView& view) {
  const TensorView flat = view.flat();
  if (spec.init == InitKind::normal) {
    const RngKey key{seed, 0, static_cast<std::uint32_t>(parameter)};
    context.run(RandomNormal{flat, spec.std, key, static_cast<std::uint64_t>(begin)});
  } else {
    context.run(Fill{flat, spec.init == InitKind::ones ? 1.0 : 0.0});
  }
}

std::unique_ptr<WeightStore> make_weight_store(RankContext& context, const Strategy& strategy,
                                               const ParameterTable& table,
                                               const Partition& partition,
                                               const std::vector<Transformer::Visit>& visits) {
  if (strategy.zero_stage < 3) {
    return std::make_unique<ReplicatedWeights>(context, strategy, table, partition);
  }
  return std::make_unique<ShardedWeights>(context, strategy, table, partition, visits);
}

}  // namespace zl
