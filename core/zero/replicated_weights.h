// ZeRO stages 0, 1 and 2: every rank holds all weights in one flat buffer.
// Ownership: owns the buffer. Threads: one rank's thread.
#pragma once

#include <vector>

#include "core/zero/weight_store.h"

namespace zl {

// Stages 1 and 2 update one chunk per parameter and all-gather the rest: with overlap_comm unit by
// unit on the communication stream, each unit waiting for its own weights at its next forward.
class ReplicatedWeights : public WeightStore {
 public:
  ReplicatedWeights(RankContext& context, const StoreConfig& config, const ParameterTable& table,
                    const Partition& partition);

  void initialize(const InitialWeights& initial) override;
  void enter(int unit, Pass pass) override;
  void leave(int, Pass) override {}
  TensorView weight(int parameter) override;
  TensorView owned(int parameter) override;
  void gather_updated() override;

 private:
  void gather(StreamId stream, const std::vector<int>& parameters);

  RankContext& context_;
  const StoreConfig config_;
  const ParameterTable& table_;
  const Partition& partition_;
  Tensor weights_;
  std::vector<std::vector<int>> unit_parameters_;
  std::vector<EventId> arriving_;  // per unit: the event of its all-gather; -1: none
};

}  // namespace zl
