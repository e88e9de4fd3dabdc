// Whether plans fit by what the software itself would hold, where that is known (software_bytes.h):
// without a recording, as judge_device() judges.
// Ownership: refers to the scenario and the space. Threads: immutable; free to use from any.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "core/train/run_result.h"
#include "scenarios/files/scenario.h"
#include "simulator/cluster/software.h"
#include "simulator/planner/plan_space.h"

namespace zl {

class PlanMemory {
 public:
  // budget: bytes of a device; 0: no limit.
  PlanMemory(const Scenario& scenario, const sim::PlanSpace& space, std::int64_t budget);

  // Else this core's bytes decide.
  bool knows(const sim::PlanPoint& point) const;
  // Bytes in use that no plan there is below, by its weights, gradients and optimizer alone: of
  // plans that are known. In less than a microsecond.
  std::int64_t least(const sim::PlanPoint& point, const sim::PlanSpace::Division& division) const;
  bool could_fit(std::int64_t least) const;

  struct Held {
    // Of each stage, of automatic recomputation: the fewest that fit, all stages the same number.
    std::vector<std::int64_t> blocks = {};
    std::int64_t in_use = 0;
  };
  // Nothing where it does not fit, or where all or none of its automatic blocks are recomputed,
  // which is another plan.
  std::optional<Held> fitting(const sim::PlanPoint& point) const;

 private:
  HeldBySoftware held(const sim::PlanPoint& point, const std::vector<std::int64_t>& blocks) const;
  bool fits(const HeldBySoftware& held) const { return held.within(budget_) != Fits::no; }

  const Scenario& scenario_;
  const sim::PlanSpace& space_;
  const std::int64_t budget_;
  std::optional<sim::Software> software_;  // that says what it holds
  std::vector<bool> known_;                // of each state, on whole and on cut models
  std::int64_t parameters_ = 0;
};

}  // namespace zl
