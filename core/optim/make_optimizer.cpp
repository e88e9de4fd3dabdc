#include "core/optim/onebit_adam.h"
#include "core/optim/onebit_lamb.h"
#include "core/optim/zero_one_adam.h"

namespace zl {

std::unique_ptr<Optimizer> make_optimizer(RankContext& context, const OptimizerConfig& config,
                                          std::vector<UpdateRange> ranges, bool replicated,
                                          const Partition& partition,
                                          const TensorView& local_gradients,
                                          const StochasticRounding& rounding) {
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
      return std::make_unique<Optimizer>(context, config, std::move(ranges), replicated,
                                         OptimizerHome{StreamId::compute, {}, rounding});
  }
}

}  // namespace zl
