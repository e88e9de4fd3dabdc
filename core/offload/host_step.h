// The optimizer step off the device (ZeRO-Offload and ZeRO-Infinity, SPECS 4): gradients that came
// to the host update fp32 state in host memory or files, and the weights in the compute type go
// back. Element by element the same arithmetic as on the device, so the same bits.
// Ownership: owns state and buffers. Threads: one rank's thread.
#pragma once

#include <memory>
#include <vector>

#include "core/offload/host_gradients.h"
#include "core/offload/placement.h"
#include "core/offload/state_tier.h"
#include "core/zero/weight_store.h"

namespace zl {

class HostStep {
 public:
  // Of the parameters that `gradients` holds. Draws the masters.
  HostStep(RankContext& context, const Strategy& strategy, const ParameterTable& table,
           const Partition& partition, WeightStore& weights, HostGradients& gradients,
           std::uint64_t seed);

  // Updates from the gradients that have arrived, after what was delayed before. Afterwards the
  // compute stream sees the new weights, with a delayed update those of the step before.
  void step(const StepScalars& scalars);
  // Sends the weights of a delayed update; whether there was one.
  bool settle();
  // The fp32 value of this rank's chunk, to the device, on the compute stream.
  void read_master(int parameter, const TensorView& destination);

 private:
  void make_optimizers(const Strategy& strategy);
  void draw_masters(const ParameterTable& table, std::uint64_t seed);
  TensorView master(std::size_t group, int parameter) const;
  TensorView new_weights(int parameter) const;
  void send(const SubGroup& group);

  RankContext& context_;
  const OffloadConfig& offload_;
  const Partition& partition_;
  WeightStore& weights_;
  HostGradients& gradients_;
  std::vector<SubGroup> groups_;
  std::unique_ptr<StateTier> tier_;
  Tensor outgoing_;  // updated weights on their way to the device
  std::vector<std::unique_ptr<Optimizer>> optimizers_;  // by sub-group; null: on the device
  std::int64_t begin_ = 0;                              // of the first sub-group on the host
  std::int64_t steps_ = 0;
  bool pending_ = false;
};

}  // namespace zl
