// Why a prediction is what it is: where a step's time and the peak's bytes go, and which part of
// the hardware would change it most.
// Ownership: values. Threads: pure functions.
#pragma once

#include <string>
#include <vector>

#include "scenarios/run/replay.h"
#include "scenarios/run/software_bytes.h"
#include "simulator/memory_curve.h"

namespace zl {

// All work of one kind in one step: the same operation, phase and kind of layer, held up by the
// same thing.
struct StepItem {
  std::string operation;  // short_name() of its events: products and collectives with their shape
  std::string phase, layers;
  std::string limit;  // compute, memory, shortest kernel; a link; measured, of a calibrated cluster
  std::int64_t count = 0;
  double seconds = 0;
  double flops = 0;
  double bytes = 0;  // moved by the software's kernels; sent by the rank; copied
  double least = 0;  // seconds at the data sheet's peak of what limits it; 0: unknown
  double of_peak() const { return seconds > 0 ? least / seconds : 0; }
};

// A step with twice as much of one thing.
struct Lever {
  std::string twice;
  double step_seconds = 0;
};

// Of the recording's own rank, the one that holds the most.
struct Explanation {
  RunResult result;                 // as it was priced
  std::vector<StepItem> step;       // the last one, the longest first
  std::vector<sim::HeldItem> peak;  // device memory, the largest first
  SoftwareBytesOrWhy software;      // what the software itself would hold: a prediction
  std::vector<Lever> levers;  // the one that helps most first; none that changes less than 0.1 %
};

// Of one event: what limits it, and what else its price rests on; neither names nor seconds.
StepItem explain_event(const TraceEvent& event, const sim::ClusterSpec& cluster);

// Of what was recorded and priced on the scenario's cluster.
Explanation explain(const Scenario& scenario, const Recording& recording, RunResult result,
                    const sim::Timeline& timeline);

// Records and prices the strategy without a limit of memory. Throws Error as Runner::run does.
Explanation explain(const Scenario& scenario, const ImportedStrategy& imported);

}  // namespace zl
