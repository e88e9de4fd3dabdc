// Every stage, recomputation, micro-batch, offload and mesh of one strategy, judged one by one.
// Ownership: values. Threads: pure functions; `found` is called by the caller's thread.
#pragma once

#include <atomic>
#include <functional>
#include <vector>

#include "scenarios/planner/variation.h"

namespace zl {

// One combination, judged; the recordings are not kept.
struct SweepRow {
  Variation variation;
  int stage = 0;
  std::string recompute;  // as the strategy file writes it
  std::int64_t micro_batch = 1;
  std::int64_t tensor = 1, pipeline = 1;
  std::string schedule;  // of the pipeline; "none": there is none
  std::string offload;   // "none", "optimizer", "optimizer and weights"
  Fits fits = Fits::yes;
  std::int64_t peak_device = 0, reserved = 0;  // bytes of one rank: in use, must be there
  double step_time = 0;                        // seconds
  double tokens_per_second = 0;                // of all ranks
};

// Every combination that this build accepts: stages 0-3, recomputation none, auto and full, five
// micro-batches from 1 up, nothing, the optimizer or also the weights on the host; each mesh with
// each stage and recomputation; and each pipeline under each schedule.
std::vector<Variation> sweep_variations(const Study& study, const StrategyStudy& strategy);

// Judges the strategy as it is, then each variation, in this order; those that the scenario forbids
// are left out. Ends early once `cancelled` is true.
void sweep(const Study& study, const StrategyStudy& strategy,
           const std::vector<Variation>& variations, const std::atomic<bool>& cancelled,
           const std::function<void(SweepRow)>& found);

}  // namespace zl
