// Optimizer state off the device, sub-group by sub-group: always in host memory, or in files with
// a few sub-groups' worth of buffers in host memory.
// Ownership: owns the state. Threads: one rank's thread.
#pragma once

#include <memory>
#include <vector>

#include "core/offload/placement.h"
#include "core/optim/optimizer.h"
#include "core/rank/rank_context.h"

namespace zl {

class StateTier {
 public:
  virtual ~StateTier() = default;
  // The fp32 tensors of a sub-group, at a fixed address; with files another sub-group may use the
  // same memory.
  virtual StateViews state(std::size_t group) const = 0;
  // The first call for a sub-group: the host and compute streams may fill its state, then store().
  virtual void create(std::size_t group) = 0;
  // Later work of the host stream finds the state in memory.
  virtual void fetch(std::size_t group) = 0;
  // What the host stream was told so far is the last use of the state, which is kept.
  virtual void store(std::size_t group) = 0;
  // The state was only read, last by the work before `read`.
  virtual void release(std::size_t group, EventId read) = 0;
};

std::unique_ptr<StateTier> make_state_tier(RankContext& context, const OffloadConfig& offload,
                                           const OptimizerConfig& optimizer,
                                           const std::vector<SubGroup>& groups);

}  // namespace zl
