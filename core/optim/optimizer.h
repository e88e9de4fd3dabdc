// The optimizer of one rank: fp32 masters (where the weights are 16-bit), moments, and the update
// ops over the ranges the rank owns. AdamW, Adam, LAMB and SGD are in this class; optimizers that
// exchange compressed momenta derive from it. Ownership: owns its state. Threads: one rank's
// thread.
#pragma once

#include <memory>
#include <vector>

#include "core/optim/optimizer_config.h"
#include "core/parallel/partition.h"
#include "core/rank/rank_context.h"
#include "core/rank/state_archive.h"

namespace zl {

// A contiguous range to update: `weights` in the compute type, its reduced gradient.
struct UpdateRange {
  TensorView weights, gradient;
  int parameter = 0;
  std::int64_t begin = 0;  // index of the first element in the parameter
};

// Hyper-parameters of one step.
struct StepScalars {
  double lr = 0, beta1 = 0, beta2 = 0;
  double gradient_scale = 1;  // unscale and clip
};

// State tensors of n elements each; empty where the optimizer has none.
struct OptimizerState {
  TensorView master, first, second;
};

// Of weights to bf16, the same for every partition: the random words belong to (seed, step,
// parameter, element).
struct StochasticRounding {
  bool on = false;
  std::uint64_t seed = 0;
};

// Where an optimizer works: on which stream, and on which state. An empty state: it allocates its
// own on the device.
struct OptimizerHome {
  StreamId stream = StreamId::compute;
  OptimizerState state;
  StochasticRounding rounding;
};

// Whether an optimizer keeps a first and a second moment (SGD: a momentum, in the first).
bool has_first_moment(const OptimizerConfig& config);
bool has_second_moment(const OptimizerConfig& config);

class Optimizer {
 public:
  // Ranges keep their order; state is laid out in that order. Contiguous neighbours are updated by
  // one op, except under LAMB, whose trust ratios are per parameter, and stochastic rounding.
  // replicated: every rank updates everything (stage 0), so norms need no collective.
  Optimizer(RankContext& context, const OptimizerConfig& config, std::vector<UpdateRange> ranges,
            bool replicated, const OptimizerHome& home = {});
  virtual ~Optimizer() = default;
  Optimizer(const Optimizer&) = delete;
  Optimizer& operator=(const Optimizer&) = delete;

  bool has_masters() const { return !state_.master.empty(); }
  // The fp32 values of a range: its master, or the fp32 weights themselves.
  TensorView master(std::size_t range) const;
  const std::vector<UpdateRange>& ranges() const { return ranges_; }

  virtual void step(const StepScalars& scalars);
  // Coming gradients lie this many elements behind the ranges' (a second buffer).
  void shift_gradients(std::int64_t elements) { gradient_shift_ = elements; }
  std::int64_t steps() const { return steps_; }

  // Whether the coming step takes gradients averaged over the ranks; if not, each rank's own.
  virtual bool averages_gradients() const { return true; }
  // Coming steps of one kind, after steps of one kind, run the same ops and collectives.
  virtual int step_kind() const { return 0; }
  // Counts a step that the recording device does not run because it knows its kind.
  virtual void skip() { ++steps_; }
  // What is the optimizer's own: state that its home gave it is the home's.
  virtual void archive(StateArchive& archive, const std::string& prefix);

 protected:
  struct Piece {
    TensorView param, gradient, copy;
    std::int64_t offset = 0;  // into the state
    std::size_t range = 0;    // the first it is made of
    std::int64_t count() const { return param.count(); }
  };

  Tensor allocate(const char* what);
  void make_pieces();
  TensorView gradient_of(const Piece& piece) const;
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
  StreamId stream_;
  Tensor masters_, first_, second_;  // where the state is the optimizer's own
  Tensor trust_averages_;            // 1-bit LAMB
  OptimizerState state_;
  std::int64_t elements_ = 0;
  std::int64_t steps_ = 0;
  std::int64_t gradient_shift_ = 0;
};

// replicated: as Optimizer's. local_gradients: all gradients of this rank, a flat full buffer of
// the partition, which the one-bit optimizers need; empty where the ZeRO stage does not keep them.
std::unique_ptr<Optimizer> make_optimizer(RankContext& context, const OptimizerConfig& config,
                                          std::vector<UpdateRange> ranges, bool replicated,
                                          const Partition& partition,
                                          const TensorView& local_gradients,
                                          const StochasticRounding& rounding);

}  // namespace zl
