// LAMB (You et al. 2020): Adam's direction, and for each parameter a step as long as its weights
// allow.
// Ownership: owns its state. Threads: one rank's thread.
#pragma once

#include "core/optim/optimizer.h"

namespace zl {

// One update of all pieces, a parameter each; state.steps() counts it. averages (f32 [pieces], or
// empty): running averages of the trust ratios, which 1-bit LAMB keeps in its warm-up.
void lamb_step(RankContext& context, const OptimizerState& state, const OptimizerConfig& config,
               const StepScalars& scalars, const TensorView& averages = {});

class Lamb : public Optimizer {
 public:
  Lamb(RankContext& context, const OptimizerConfig& config, std::vector<UpdateRange> ranges,
       bool replicated);

  void step(const StepScalars& scalars) override;
  const OptimizerState& state() const override { return state_; }
  void skip() override { state_.count_step(); }
  void archive(StateArchive& archive, const std::string& prefix) override;

 private:
  RankContext& context_;
  OptimizerConfig config_;
  OptimizerState state_;
};

}  // namespace zl
