// The optimizer of one rank: update ops over the ranges that the rank owns. Each algorithm is a
// class of its own with an OptimizerState of its own; make_optimizer alone knows them all.
// Ownership: owns its state. Threads: one rank's thread.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/optim/optimizer_config.h"
#include "core/optim/optimizer_state.h"
#include "core/parallel/partition.h"

namespace zl {

// Hyper-parameters of one step.
struct StepScalars {
  double lr = 0, beta1 = 0, beta2 = 0;
  double gradient_scale = 1;        // unscale and clip
  TensorView factor = {};           // in its place, f64[1] where the optimizer works
  std::int64_t gradient_shift = 0;  // gradients lie this many elements behind the ranges'
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
  StateViews state = {};
  StochasticRounding rounding;
};

class Optimizer {
 public:
  virtual ~Optimizer() = default;

  virtual void step(const StepScalars& scalars) = 0;
  virtual const OptimizerState& state() const = 0;
  virtual void archive(StateArchive& archive, const std::string& prefix) = 0;

  // Whether the coming step takes gradients averaged over the ranks; if not, each rank's own.
  virtual bool averages_gradients() const { return true; }
  // Coming steps of one kind, after steps of one kind, run the same ops and collectives.
  virtual int step_kind() const { return 0; }
  // Counts a step that the recording device does not run because it knows its kind.
  virtual void skip() = 0;

  bool has_masters() const { return state().has_masters(); }
  TensorView master(std::size_t range) const { return state().master(range); }
  std::int64_t steps() const { return state().steps(); }
};

// Whether an optimizer keeps a first and a second moment (SGD: a momentum, in the first).
bool has_first_moment(const OptimizerConfig& config);
bool has_second_moment(const OptimizerConfig& config);

// replicated: as OptimizerState's. local_gradients: all gradients of this rank, a flat full buffer
// of the partition, which the one-bit optimizers need; empty where the ZeRO stage does not keep
// them.
std::unique_ptr<Optimizer> make_optimizer(RankContext& context, const OptimizerConfig& config,
                                          std::vector<UpdateRange> ranges, bool replicated,
                                          const Partition& partition,
                                          const TensorView& local_gradients,
                                          const StochasticRounding& rounding);
// Of ranges in host memory, sharded: AdamW, Adam or SGD.
std::unique_ptr<Optimizer> make_host_optimizer(RankContext& context, const OptimizerConfig& config,
                                               std::vector<UpdateRange> ranges,
                                               const OptimizerHome& home);

}  // namespace zl
