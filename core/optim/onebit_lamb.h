// 1-bit LAMB (Li et al. 2021): LAMB until freeze_step, then momenta of each rank's own
// gradients, averaged one bit an element under one scale for all parameters (each weighted so that
// its momenta have the mean size), and trust ratios that start from the warm-up's average. ZeRO
// stage 0, no bias correction.
// Ownership: owns its state. Threads: one rank's thread.
#pragma once

#include "core/optim/compressed_allreduce.h"
#include "core/optim/optimizer.h"

namespace zl {

class OnebitLamb : public Optimizer {
 public:
  OnebitLamb(RankContext& context, const OptimizerConfig& config, std::vector<UpdateRange> ranges,
             const Partition& partition, const TensorView& local_gradients);

  void step(const StepScalars& scalars) override;
  const OptimizerState& state() const override { return state_; }
  bool averages_gradients() const override { return !frozen(); }
  int step_kind() const override;
  void skip() override { state_.count_step(); }
  void archive(StateArchive& archive, const std::string& prefix) override;

 private:
  // One parameter's share of a step, without padding.
  struct Slice {
    std::int64_t offset = 0, count = 0;
    TensorView of(const TensorView& state) const { return state.flat(offset, count); }
  };
  // What one step needs for a while. Of each parameter: the bounds of its direction, update and
  // ratio, and the squared norms of the first two.
  struct Scratch {
    Tensor direction, update, ratio, bounds, squares, trusts;

    TensorView bound(std::int64_t parameter, int which) const {
      return bounds.view.flat(3 * parameter + which, 1);
    }
    TensorView square(std::int64_t parameter, int which) const {
      return squares.view.flat(4 * parameter + 2 * which, 2);
    }
  };

  bool frozen() const { return steps() >= config_.onebit.freeze_step; }
  std::size_t parameters() const { return state_.ranges().size(); }
  Slice slice(std::size_t parameter) const;
  Scratch allocate_scratch();
  void freeze();
  void weigh(bool divide);
  void compressed(const StepScalars& scalars);
  void measure(const Slice& slice, std::int64_t parameter, const Scratch& scratch);
  void update(std::size_t parameter, const StepScalars& scalars, const Scratch& scratch);

  RankContext& context_;
  OptimizerConfig config_;
  const Partition& partition_;
  OptimizerState state_;
  TensorView local_gradients_;
  Tensor trust_averages_;
  CompressedAllReduce all_reduce_;
  Tensor fresh_second_, last_first_, last_factors_;
  std::vector<double> weights_;  // of each parameter's momenta in a message
};

}  // namespace zl
