// Results of `zerolab run` as tables.
// Ownership: values. Threads: pure functions.
#pragma once

#include <span>
#include <string>

#include "core/train/run_result.h"
#include "results/format.h"

namespace zl {

// For people: one row per strategy and backend, and what decides between them, the most important
// columns first. What runs differ in (micro-batch, cluster, ...) is a column, what they share is in
// setup_line(). The simulator's loss, which is no prediction, is left out.
Table summary_table(std::span<const RunResult> results);

// All there is to a row: the above with memory by owner (tags that no run uses are left out),
// reserved memory, host memory, files and traffic.
Table wide_table(std::span<const RunResult> results);

// "llama3-8b on 8xh100, 8 ranks, bf16, micro-batch 1 x accumulation 4, sequences of 8192, 262144
// tokens a step": what all rows share. Empty without rows.
std::string setup_line(std::span<const RunResult> results);

// What the times rest on, where that is less than a calibration of this machine; else empty.
std::string basis_line(std::span<const RunResult> results);

// For programs: every column, always.
Table flat_table(std::span<const RunResult> results);

// Each simulated run beside the measured run of the same strategy. No rows: nothing to compare.
Table prediction_table(std::span<const RunResult> results);

}  // namespace zl
