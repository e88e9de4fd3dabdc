// Stochastic gradient descent with momentum, as torch.optim.SGD.
// Ownership: owns its state. Threads: one rank's thread.
#pragma once

#include "core/optim/optimizer.h"

namespace zl {

class Sgd : public Optimizer {
 public:
  Sgd(RankContext& context, const OptimizerConfig& config, std::vector<UpdateRange> ranges,
      bool replicated, const OptimizerHome& home);

  void step(const StepScalars& scalars) override;
  const OptimizerState& state() const override { return state_; }
  void skip() override { state_.count_step(); }
  void archive(StateArchive& archive, const std::string& prefix) override;

 private:
  RankContext& context_;
  OptimizerConfig config_;
  StreamId stream_;
  OptimizerState state_;
};

}  // namespace zl
