// A scenario evaluated: each strategy recorded, priced, and judged whether it fits.
// Ownership: values; recordings are shared and immutable. Threads: free to read from any.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "scenarios/planner/document.h"
#include "scenarios/run/simulate.h"
#include "scenarios/run/software_bytes.h"
#include "scenarios/run/stage_runs.h"
#include "simulator/memory_curve.h"

namespace zl {

struct StrategyStudy {
  ImportedStrategy imported;
  std::shared_ptr<const Recording> recording;
  std::shared_ptr<const SoftwareBytes> software;  // what it would hold; null: not known
  RunResult result;  // as of unlimited memory when it does not fit; outcome and message then say so
  // Of rank_traces(), the recording's own first.
  std::shared_ptr<const std::vector<sim::Timeline>> timelines;

  const std::string& name() const { return imported.strategy.name; }
  const sim::Timeline& timeline() const { return timelines->front(); }
  // Of the device, of the recording's own rank.
  std::vector<sim::MemoryPoint> memory() const {
    return sim::memory_over_time(recording->trace, timeline().events, MemorySpace::device);
  }
  // What every stage of the pipeline did; one without a pipeline.
  std::vector<StageRun> stages() const { return stage_runs(*recording, *timelines); }
  bool has_pipeline() const { return recording && recording->strategy.pipeline.ranks > 1; }
  bool fits() const { return result.outcome == Outcome::ok; }
  // Device bytes of a rank that must be there: what the software would hold, where that is known,
  // else what the pool reserves.
  std::int64_t reserved() const { return bytes_that_must_fit(result); }
};

struct Study {
  Document document;
  Scenario scenario;
  sim::ClusterSpec cluster;
  std::int64_t budget = 0;  // device bytes of one rank; 0: unlimited
  std::vector<StrategyStudy> strategies;
  int recorded = 0;    // recordings that had to be made
  int priced = 0;      // strategies that had to be priced; others were kept with their prices
  double seconds = 0;  // wall clock of the evaluation

  const StrategyStudy* find(const std::string& strategy) const {
    for (const StrategyStudy& each : strategies) {
      if (each.name() == strategy) return &each;
    }
    return nullptr;
  }
};

}  // namespace zl
