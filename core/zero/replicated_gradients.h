// ZeRO stages 0 and 1: whole gradients in one flat buffer, accumulated over micro-batches and
// reduced once per step in buckets: all-reduce (stage 0) or reduce-scatter in place (stage 1).
// Ownership: owns the buffer. Threads: one rank's thread.
#pragma once

#include <vector>

#include "core/zero/gradient_store.h"

namespace zl {

class ReplicatedGradients : public GradientStore {
 public:
  ReplicatedGradients(RankContext& context, const StoreConfig& config, const ParameterTable& table,
                      const Partition& partition);

  void begin_micro_batch(bool first, bool last) override;
  GradientTarget target(int parameter) override;
  void ready(int parameter) override;
  void end_micro_batch() override;
  TensorView owned(int parameter) override;
  void set_averaging(bool averages) override { averages_ = averages; }
  TensorView local() override { return gradients_; }

 private:
  void flush();

  RankContext& context_;
  const StoreConfig config_;
  const ParameterTable& table_;
  const Partition& partition_;
  GradientReducer reducer_;
  Tensor gradients_;
  std::vector<bool> touched_;      // has a contribution in this micro-batch
  std::vector<int> bucket_;        // ready, not yet reduced
  std::vector<Tensor> in_flight_;  // casts; freed when the compute stream has waited
  std::int64_t bucket_elements_ = 0;
  EventId taken_ = -1;  // the last copy to the host
  bool first_ = true, last_ = true, averages_ = true;
};

}  // namespace zl
