// Optimizer state in host memory. Ownership: owns the tensors. Threads: one rank's thread.
#pragma once

#include "core/offload/state_tier.h"

namespace zl {

class ResidentState : public StateTier {
 public:
  ResidentState(RankContext& context, const OffloadConfig& offload,
                const OptimizerConfig& optimizer, const std::vector<SubGroup>& groups);

  StateViews state(std::size_t group) const override;
  void create(std::size_t) override {}
  void fetch(std::size_t) override {}
  void store(std::size_t) override {}
  void release(std::size_t, EventId) override {}

 private:
  const std::vector<SubGroup>& groups_;
  std::int64_t begin_ = 0;  // of the first sub-group on the host
  Tensor master_, first_, second_;
};

}  // namespace zl
