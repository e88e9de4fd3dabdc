// Optimizer state in files (ZeRO-Infinity, Rajbhandari et al. 2021): sub-group k uses buffer set k
// mod S in host memory. Reads run ahead of the host's updates, and writes behind them, as far as
// the sets, pipeline_read and pipeline_write allow. Ownership: owns objects and buffers. Threads:
// one rank's thread.
#pragma once

#include "core/offload/state_tier.h"

namespace zl {

// Sets that offload.optimizer_buffer_count buffers make when an update needs `tensors` at once; at
// least one, and two where transfers are pipelined.
std::size_t buffer_sets(const OffloadConfig& offload, std::size_t tensors);

class SwappedState : public StateTier {
 public:
  SwappedState(RankContext& context, const OffloadConfig& offload, const OptimizerConfig& optimizer,
               const std::vector<SubGroup>& groups);

  StateViews state(std::size_t group) const override;
  void create(std::size_t group) override;
  void fetch(std::size_t group) override;
  void store(std::size_t group) override;
  void release(std::size_t group, EventId read) override;

 private:
  struct Set {
    std::vector<Tensor> tensors;  // master and moments, of the largest sub-group
    std::size_t holds = kNone;    // whose state it has or will have
    EventId arrived = -1;         // the read that brings it
    EventId free = -1;            // the last use of what was in it before
  };
  struct File {
    StoredObject object;
    EventId written = -1;
  };
  static constexpr std::size_t kNone = SIZE_MAX;

  Set& set_of(std::size_t group) { return sets_[group % sets_.size()]; }
  std::vector<TensorView> parts(std::size_t group) const;
  void read(std::size_t group);

  RankContext& context_;
  const OffloadConfig& offload_;
  const std::vector<SubGroup>& groups_;
  bool first_moment_, second_moment_;
  std::vector<Set> sets_;
  std::vector<File> files_;  // by sub-group
};

}  // namespace zl
