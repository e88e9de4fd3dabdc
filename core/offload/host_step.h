// The optimizer step off the device (ZeRO-Offload, Ren et al. 2021; ZeRO-Infinity, Rajbhandari et
// al. 2021): gradients that came to the host update fp32 state in host memory or files, and the
// weights in the compute type go back. Element by element the same arithmetic as on the device, so
// the same bits. Ownership: owns state and buffers. Threads: one rank's thread.
#pragma once

#include <memory>
#include <vector>

#include "core/model/initial_weights.h"
#include "core/offload/host_gradients.h"
#include "core/offload/placement.h"
#include "core/offload/state_tier.h"
#include "core/offload/updated_weights.h"
#include "core/parallel/precision.h"

namespace zl {

class HostStep {
 public:
  // Of the parameters that `gradients` holds. Draws the masters.
  HostStep(RankContext& context, const OffloadConfig& offload, const OptimizerConfig& optimizer,
           const PrecisionConfig& precision, const ParameterTable& table,
           const Partition& partition, const Placement& placement, UpdatedWeights& weights,
           HostGradients& gradients, const InitialWeights& initial);

  // Updates from the gradients that have arrived, after what was delayed before. Afterwards the
  // compute stream sees the new weights, with a delayed update those of the step before.
  void step(StepScalars scalars);
  // Sends the weights of a delayed update; whether there was one.
  bool apply_delayed();
  // As Optimizer's: a delayed update and one that is not are of two kinds.
  int step_kind() const { return delays() ? 1 : 0; }
  void skip() { ++steps_; }
  // A delayed update that is pending is part of it. The host stream is idle.
  void archive(StateArchive& archive);
  // The fp32 value of this rank's chunk, to the device, on the compute stream.
  void read_master(int parameter, const TensorView& destination);

 private:
  bool delays() const {
    return offload_.delayed_update_after >= 0 && steps_ >= offload_.delayed_update_after;
  }
  void place_new_weights(DType dtype);
  void make_optimizers(const ParameterTable& table, const OptimizerConfig& config,
                       const StochasticRounding& rounding);
  void draw_masters(const ParameterTable& table, const InitialWeights& initial);
  TensorView master(std::size_t group, int parameter) const;
  struct Leaving {
    Tensor storage;
    EventId free = -1;
  };
  Leaving& leaving(std::size_t group) { return leaving_[group % leaving_.size()]; }
  void send(std::size_t group);
  void archive_pending(StateArchive& archive);

  RankContext& context_;
  const OffloadConfig& offload_;
  const Partition& partition_;
  UpdatedWeights& weights_;
  HostGradients& gradients_;
  const std::vector<SubGroup>& groups_;
  std::unique_ptr<StateTier> tier_;
  // Updated weights on their way to the device; on their way to files, of sub-groups in turn: as
  // many as offload_param has buffers, since files may be slower than updates.
  Tensor outgoing_;
  std::vector<Leaving> leaving_;
  std::vector<TensorView> new_weights_;  // by parameter, in the compute type, in host memory
  std::vector<std::unique_ptr<Optimizer>> optimizers_;  // by sub-group; null: on the device
  std::int64_t steps_ = 0;
  bool pending_ = false;
};

}  // namespace zl
