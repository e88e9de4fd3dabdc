// 1-bit Adam (Tang et al. 2021): AdamW until the second moment is frozen, then momenta
// of each rank's own gradients, averaged one bit an element. With ZeRO-1 the first moment and the
// errors stay whole on every rank, second moment and masters are sharded, and the compression
// chunk is the partition's chunk; losses and weights are the bits of stage 0.
// Ownership: owns its state. Threads: one rank's thread.
#pragma once

#include "core/optim/compressed_allreduce.h"
#include "core/optim/optimizer.h"

namespace zl {

class OnebitAdam : public Optimizer {
 public:
  OnebitAdam(RankContext& context, const OptimizerConfig& config, std::vector<UpdateRange> ranges,
             const Partition& partition, const TensorView& local_gradients, bool replicated);

  void step(const StepScalars& scalars) override;
  const OptimizerState& state() const override { return state_; }
  bool averages_gradients() const override { return !frozen(); }
  int step_kind() const override;
  void skip() override { state_.count_step(); }
  void archive(StateArchive& archive, const std::string& prefix) override;

  // From the first step whose momenta are compressed.
  bool frozen() const { return frozen_at_ > 0; }
  std::int64_t frozen_at() const { return frozen_at_; }  // steps before that; 0: not yet
  CompressedAllReduce& all_reduce() { return all_reduce_; }

 private:
  bool is_check(std::int64_t step) const;
  bool variance_is_stable();
  void freeze();
  void compressed(const StepScalars& scalars);
  TensorView momentum(std::size_t range) const;

  RankContext& context_;
  OptimizerConfig config_;
  const Partition& partition_;
  OptimizerState state_;
  TensorView local_gradients_;
  CompressedAllReduce all_reduce_;
  Tensor whole_momentum_;  // ZeRO-1; stage 0 has it in the state
  std::int64_t check_every_;
  double last_variance_ = 0;
  std::int64_t frozen_at_ = 0;
};

}  // namespace zl
