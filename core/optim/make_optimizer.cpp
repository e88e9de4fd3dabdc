#include "core/base/error.h"
#include "core/optim/onebit_adam.h"
#include "core/optim/onebit_lamb.h"
#include "core/optim/zero_one_adam.h"

namespace zl {

std::unique_ptr<Optimizer> make_optimizer(RankContext& context, const Strategy& strategy,
                                          std::vector<UpdateRange> ranges,
                                          const Partition& partition,
                                          const TensorView& local_gradients, std::uint64_t seed) {
  const OptimizerConfig& config = strategy.optimizer;
  const bool replicated = strategy.zero_stage == 0;
  if (const std::string conflict = stage_conflict(strategy); !conflict.empty()) {
    throw Error(ErrorCode::invalid, "strategy.zero_stage: " + conflict);
  }
  OptimizerHome home;
  home.rounding = {strategy.stochastic_rounding, seed};
  switch (config.kind) {
    case OptimizerKind::onebit_adam:
      return std::make_unique<OnebitAdam>(context, config, std::move(ranges), partition,
                                          local_gradients, replicated);
    case OptimizerKind::zero_one_adam:
      return std::make_unique<ZeroOneAdam>(context, config, std::move(ranges), partition,
                                           local_gradients);
    case OptimizerKind::onebit_lamb:
      return std::make_unique<OnebitLamb>(context, config, std::move(ranges), partition,
                                          local_gradients);
    default:
      return std::make_unique<Optimizer>(context, config, std::move(ranges), replicated, home);
  }
}

}  // namespace zl
