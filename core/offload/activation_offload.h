// Kept inputs of recomputed blocks on the host (DeepSpeed's cpu_checkpointing): away after the
// forward, back before the recomputation, one group ahead of it.
// Ownership: owns the host copies. Threads: one rank's thread.
#pragma once

#include <deque>
#include <map>
#include <utility>

#include "core/model/kept_inputs.h"
#include "core/offload/offload_config.h"
#include "core/rank/rank_context.h"

namespace zl {

class ActivationOffload : public KeptInputs {
 public:
  ActivationOffload(RankContext& context, const OffloadConfig& offload)
      : context_(context), offload_(offload) {}

  void put(int slot, int layer, Tensor kept) override;
  void fetch(int slot, int layer) override;
  Tensor take(int slot, int layer) override;
  void finish() override { retire(0); }

 private:
  struct Leaving {
    Tensor kept;
    EventId event;
  };
  struct Coming {
    Tensor tensor;
    EventId event;
  };
  void retire(std::size_t keep);

  RankContext& context_;
  const OffloadConfig& offload_;
  using Place = std::pair<int, int>;  // slot and layer
  std::map<Place, Tensor> host_;      // for all micro-batches of the slot
  std::deque<Leaving> leaving_;
  std::map<Place, Coming> coming_;
};

}  // namespace zl
