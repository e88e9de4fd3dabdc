// An explanation as tables: of `zerolab explain` and of the dashboard.
// Ownership: values. Threads: pure functions.
#pragma once

#include "results/format.h"
#include "scenarios/run/explain.h"

namespace zl {

// What a step's time goes to: part, time, share. Parts that take none are left out.
Table parts_table(const RunResult& run);
// The items of a step: how often, how long, FLOPs, bytes, rates, what limits them.
Table step_table(const Explanation& why);
// What is held at the peak.
Table peak_table(const Explanation& why);
// Where the software's own bytes go, the largest first.
Table software_parts_table(const SoftwareBytes& bytes);
// What a step takes with twice as much of one thing.
Table lever_table(const Explanation& why);

}  // namespace zl
