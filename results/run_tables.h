// Results of `zerolab run` as tables.
// Ownership: values. Threads: pure functions.
#pragma once

#include <span>

#include "core/train/run_result.h"
#include "results/format.h"

namespace zl {

// For people: one row per strategy and backend; memory tags that no run uses are left out, and so
// is the simulator's loss, which is no prediction.
Table summary_table(std::span<const RunResult> results);

// For programs: every column, always.
Table flat_table(std::span<const RunResult> results);

// Each simulated run beside the measured run of the same strategy. No rows: nothing to compare.
Table prediction_table(std::span<const RunResult> results);

}  // namespace zl
