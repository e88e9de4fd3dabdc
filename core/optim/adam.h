// Adam (Kingma & Ba 2015) and AdamW (Loshchilov & Hutter 2019).
// Ownership: owns its state. Threads: one rank's thread.
#pragma once

#include "core/optim/optimizer.h"

namespace zl {

// What beside the configuration tells one Adam from another.
struct AdamVariant {
  bool decoupled = true;  // AdamW's weight decay; Adam's is L2, a part of the gradient
  StreamId stream = StreamId::compute;
  StochasticRounding rounding;
};

// One update of all pieces; state.steps() counts it. Also the warm-up of the one-bit variants.
void adam_step(RankContext& context, const OptimizerState& state, const OptimizerConfig& config,
               const StepScalars& scalars, const AdamVariant& variant = {});

class Adam : public Optimizer {
 public:
  // Stochastic rounding goes range by range: the random words of an op are of one parameter.
  Adam(RankContext& context, const OptimizerConfig& config, std::vector<UpdateRange> ranges,
       bool replicated, bool decoupled, const OptimizerHome& home);

  void step(const StepScalars& scalars) override;
  const OptimizerState& state() const override { return state_; }
  void skip() override { state_.count_step(); }
  void archive(StateArchive& archive, const std::string& prefix) override;

 private:
  RankContext& context_;
  OptimizerConfig config_;
  AdamVariant variant_;
  OptimizerState state_;
};

}  // namespace zl
