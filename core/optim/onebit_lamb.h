// 1-bit LAMB (Li et al. 2021; SPECS 5.4): LAMB until freeze_step, then momenta of each rank's own
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
  bool averages_gradients() const override { return !frozen(); }
  int step_kind() const override;
  void archive(StateArchive& archive, const std::string& prefix) override;

 private:
  // One parameter's share of a step, without padding.
  struct Slice {
    std::int64_t offset = 0, count = 0;
    TensorView of(const TensorView& state) const { return state.flat(offset, count); }
  };
  // What one step needs for a while.
  struct Scratch {
    Tensor direction, update, ratio, bounds, squares, trusts;
  };

  bool frozen() const { return steps_ >= config_.onebit.freeze_step; }
  std::size_t parameters() const { return ranges_.size(); }
  Slice slice(std::size_t parameter) const;
  Scratch allocate_scratch();
  void freeze();
  void weigh(bool divide);
  void compressed(const StepScalars& scalars);
  void measure(const Slice& slice, std::int64_t parameter, const Scratch& scratch);
  void update(std::size_t parameter, const StepScalars& scalars, const Scratch& scratch);

  const Partition& partition_;
  TensorView local_gradients_;
  CompressedAllReduce all_reduce_;
  Tensor fresh_second_, last_first_, last_factors_;
  std::vector<double> weights_;  // of each parameter's momenta in a message
};

}  // namespace zl
