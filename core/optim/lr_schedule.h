// The learning-rate schedules of DeepSpeed's `scheduler` section: the rate of each coming step.
// Ownership: copies its configuration. Threads: not shared; every rank steps its own copy.
#pragma once

#include <cstdint>
#include <optional>

#include "core/optim/optimizer_config.h"
#include "core/optim/schedule_config.h"

namespace zl {

// WarmupLR, WarmupDecayLR, WarmupCosineLR, OneCycle and LRRangeTest as DeepSpeed computes them
// (deepspeed/runtime/lr_schedules.py), and a constant rate.
//
// The state is one integer: the index starts at -1 and counts the optimizer steps that were not
// skipped. Three of DeepSpeed's properties are kept on purpose: WarmupLR runs the first two steps
// at warmup_min_lr (linear and log alike), WarmupCosineLR runs the first at 0, and OneCycle runs it
// at cycle_min_mom, though the rate is at its least too.
class LrSchedule {
 public:
  // Throws Error{invalid} naming the scheduler key, its value and the accepted range.
  LrSchedule(const ScheduleConfig& schedule, const OptimizerConfig& optimizer);

  // For the coming optimizer step.
  double lr() const;
  // OneCycle with cycle_momentum replaces both betas; every other schedule leaves them alone.
  std::optional<double> beta1() const;
  std::optional<double> beta2() const;

  // Call after an optimizer step that was applied; never after one skipped for overflow.
  void step() { ++index_; }

  // The whole state, for checkpoints.
  std::int64_t index() const { return index_; }
  void restore(std::int64_t index) { index_ = index; }

 private:
  double warmup(double start) const;
  double decay_lr() const;
  double cosine_ratio() const;
  double one_cycle_lr() const;
  double cycle_fraction() const;
  double range_test_lr() const;

  ScheduleConfig config_;
  double base_lr_;
  std::int64_t warmup_steps_;  // at least 2
  std::int64_t cycle_steps_;   // both halves
  std::int64_t index_ = -1;
};

}  // namespace zl
