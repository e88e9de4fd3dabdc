// The optimizer of one rank: fp32 masters (where the weights are 16-bit), moments, and the update
// ops over the ranges the rank owns. Ownership: owns its state. Threads: one rank's thread.
#pragma once

#include <vector>

#include "core/device/rank_context.h"
#include "core/train/strategy.h"

namespace zl {

// A contiguous range to update: `weights` in the compute type, its reduced gradient.
struct UpdateRange {
  TensorView weights, gradient;
  int parameter = 0;
  std::int64_t begin = 0;  // index of the first element in the parameter
};

// Of weights to bf16, the same for every partition: the random words belong to (seed, step,
// parameter, element).
struct StochasticRounding {
  bool on = false;
  std::uint64_t seed = 0;
};

// Hyper-parameters of one step.
struct StepScalars {
  double lr = 0, beta1 = 0, beta2 = 0;
  double gradient_scale = 1;  // unscale and clip
};

class Optimizer {
 public:
  // Ranges keep their order; state is laid out in that order. Contiguous neighbours are updated by
  // one op, except under LAMB, whose trust ratios are per parameter, and stochastic rounding.
  // replicated: every rank updates
  // everything (stage 0), so norms need no collective.
  Optimizer(RankContext& context, const OptimizerConfig& config, std::vector<UpdateRange> ranges,
            bool replicated, const StochasticRounding& rounding = {});

  bool has_masters() const { return !masters_.view.empty(); }
  // The fp32 values of a range: its master, or the fp32 weights themselves.
  TensorView master(std::size_t range) const;
  const std::vector<UpdateRange>& ranges() const { return ranges_; }

  void step(const StepScalars& scalars);
  std::int64_t steps() const { return steps_; }

 private:
  struct Piece {
    TensorView param, gradient, copy;
    std::int64_t offset = 0;  // into the state
    std::size_t range = 0;    // the first it is made of
    std::int64_t count() const { return param.count(); }
  };

  Tensor state(const char* what);
  void make_pieces();
  void adam(const StepScalars& scalars);
  void sgd(const StepScalars& scalars);
  void lamb(const StepScalars& scalars);
  void reduce_scalars(const TensorView& values, ReduceOp op);

  RankContext& context_;
  OptimizerConfig config_;
  std::vector<UpdateRange> ranges_;
  bool replicated_;
  StochasticRounding rounding_;
  std::vector<std::int64_t> offsets_;  // of each range in the state
  std::vector<Piece> pieces_;
  Tensor masters_, first_, second_;
  std::int64_t elements_ = 0;
  std::int64_t steps_ = 0;
};

}  // namespace zl
