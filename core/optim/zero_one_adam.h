// 0/1 Adam (Lu et al. 2022). Until var_freeze_step: gradients averaged in full, which
// also update the second moment, ever more rarely; one-bit gradients in between. After: every rank
// steps on its own, and ever more rarely the ranks agree, one bit an element, on how far they went.
// ZeRO stage 0. The ranks' common weights are kept in fp32 and only working weights move in
// between, so that ranks never drift apart. No bias correction.
// Ownership: owns its state. Threads: one rank's thread.
#pragma once

#include "core/optim/compressed_allreduce.h"
#include "core/optim/optimizer.h"

namespace zl {

class ZeroOneAdam : public Optimizer {
 public:
  ZeroOneAdam(RankContext& context, const OptimizerConfig& config, std::vector<UpdateRange> ranges,
              const Partition& partition, const TensorView& local_gradients);

  void step(const StepScalars& scalars) override;
  const OptimizerState& state() const override { return state_; }
  bool averages_gradients() const override;
  int step_kind() const override;
  void skip() override;
  void archive(StateArchive& archive, const std::string& prefix) override;

 private:
  std::int64_t coming() const { return steps() + 1; }
  bool variance_is_live(std::int64_t step) const { return step <= config_.onebit.var_freeze_step; }
  // Whether the coming local step ends with an agreement.
  bool is_shared() const { return coming() % local_interval_ == 0; }
  TensorView working_weights() const;
  void compressed(const StepScalars& scalars);
  void local(const StepScalars& scalars);
  void share();

  RankContext& context_;
  OptimizerConfig config_;
  OptimizerState state_;
  TensorView local_gradients_;
  CompressedAllReduce all_reduce_;
  Tensor moved_;  // since the ranks last agreed
  double lr_sum_ = 0;
  std::int64_t variance_interval_ = 1, variance_updates_ = 0;
  std::int64_t local_interval_ = 1, local_steps_ = 0;
};

}  // namespace zl
