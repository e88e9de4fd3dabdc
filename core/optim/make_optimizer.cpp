#include "core/base/error.h"
#include "core/optim/adam.h"
#include "core/optim/lamb.h"
#include "core/optim/onebit_adam.h"
#include "core/optim/onebit_lamb.h"
#include "core/optim/sgd.h"
#include "core/optim/zero_one_adam.h"

namespace zl {

bool has_first_moment(const OptimizerConfig& config) {
  return config.kind != OptimizerKind::sgd || config.momentum != 0;
}

bool has_second_moment(const OptimizerConfig& config) { return config.kind != OptimizerKind::sgd; }

std::unique_ptr<Optimizer> make_optimizer(RankContext& context, const OptimizerConfig& config,
                                          std::vector<UpdateRange> ranges, bool replicated,
                                          const Partition& partition,
                                          const TensorView& local_gradients,
                                          const StochasticRounding& rounding) {
  const OptimizerHome home{.rounding = rounding};
  switch (config.kind) {
    case OptimizerKind::adamw:
    case OptimizerKind::adam:
      return std::make_unique<Adam>(context, config, std::move(ranges), replicated,
                                    config.kind == OptimizerKind::adamw, home);
    case OptimizerKind::sgd:
      return std::make_unique<Sgd>(context, config, std::move(ranges), replicated, home);
    case OptimizerKind::lamb:
      return std::make_unique<Lamb>(context, config, std::move(ranges), replicated);
    case OptimizerKind::onebit_adam:
      return std::make_unique<OnebitAdam>(context, config, std::move(ranges), partition,
                                          local_gradients, replicated);
    case OptimizerKind::zero_one_adam:
      return std::make_unique<ZeroOneAdam>(context, config, std::move(ranges), partition,
                                           local_gradients);
    case OptimizerKind::onebit_lamb:
      return std::make_unique<OnebitLamb>(context, config, std::move(ranges), partition,
                                          local_gradients);
  }
  throw Error(ErrorCode::failed, "an optimizer of no kind");
}

std::unique_ptr<Optimizer> make_host_optimizer(RankContext& context, const OptimizerConfig& config,
                                               std::vector<UpdateRange> ranges,
                                               const OptimizerHome& home) {
  if (config.kind == OptimizerKind::sgd) {
    return std::make_unique<Sgd>(context, config, std::move(ranges), false, home);
  }
  ZL_CHECK(config.kind == OptimizerKind::adamw || config.kind == OptimizerKind::adam,
           "the host updates by AdamW, Adam or SGD");
  return std::make_unique<Adam>(context, config, std::move(ranges), false,
                                config.kind == OptimizerKind::adamw, home);
}

}  // namespace zl
