// The deepest version of a scenario's model that a strategy fits into the memory there is.
// Ownership: values. Threads: pure functions of their arguments.
#pragma once

#include "scenarios/files/scenario.h"
#include "scenarios/run/runner.h"

namespace zl {

struct LargestFit {
  std::int64_t layers = 0;      // 0: not even one layer fits
  std::int64_t parameters = 0;  // of that model
  RunResult books;              // of its simulated run
  bool limited = true;          // false: kMostLayers fits too
};
inline constexpr std::int64_t kMostLayers = 8192;

// The scenario with another depth.
Scenario with_layers(const Scenario& scenario, std::int64_t layers);

// By bisection over recordings: more layers never need less memory, and what the recording device
// finds too large is too large on the real one. Budgets: run.device_memory, or the cluster's
// device, and run.host_memory. Throws Error as Runner::run does.
LargestFit largest_fit(const Runner& runner, const Scenario& scenario,
                       const ImportedStrategy& strategy);

}  // namespace zl
