// What a stored scenario does in one step: simulated anew, for reports and exports.
// Ownership: values. Threads: pure functions.
#pragma once

#include "results/report.h"
#include "scenarios/scenario.h"
#include "simulator/timeline.h"

namespace zl {

struct Replay {
  ReportStep step;          // its last one, which stands for all later ones
  std::int64_t needed = 0;  // peak device bytes without a limit
};

// The only strategy of the scenario on the scenario's cluster, with unlimited memory. Errors are
// the step's `problem`.
Replay replay(const Scenario& scenario);

// The streams that did something in [begin, end] picoseconds, as lanes of seconds since `begin`.
std::vector<ChartLane> lanes_between(const Trace& trace, const std::vector<sim::EventTime>& times,
                                     std::int64_t begin, std::int64_t end);

}  // namespace zl
