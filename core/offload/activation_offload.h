// Kept inputs of recomputed blocks on the host (DeepSpeed's cpu_checkpointing): away after the
// forward, back before the recomputation, one group ahead of it.
// Ownership: owns the host copies. Threads: one rank's thread.
#pragma once

#include <deque>
#include <map>

#include "core/device/rank_context.h"
#include "core/train/strategy.h"

namespace zl {

class ActivationOffload {
 public:
  ActivationOffload(RankContext& context, const OffloadConfig& offload)
      : context_(context), offload_(offload) {}

  // The compute stream has been told all that makes and reads `kept`.
  void put(int layer, Tensor kept);
  // Starts the way back.
  void fetch(int layer);
  // What put() was given, readable by the compute stream.
  Tensor take(int layer);
  // The forward is over: everything has left the device.
  void finish() { retire(0); }

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
  std::map<int, Tensor> host_;  // by layer, for all micro-batches
  std::deque<Leaving> leaving_;
  std::map<int, Coming> coming_;
};

}  // namespace zl
