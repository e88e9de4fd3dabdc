// From a timeline or a measured trace to the times of a result.
// Ownership: values. Threads: pure functions.
#pragma once

#include "core/base/dtype.h"
#include "core/trace/trace.h"
#include "core/train/run_result.h"
#include "simulator/timeline.h"

namespace zl {

// Per step the duration of the step that stands for it; the median step's duration and error bar,
// and the parts of a step, averages over the steps after the first.
void write_predicted_times(const sim::Timeline& timeline,
                           const std::vector<std::int64_t>& stand_ins, RunResult& result);

// Median, minimum and maximum of result.step_seconds without the first, and the parts of a step:
// averages over the trace's steps after the first.
void write_measured_times(const Trace& trace, RunResult& result);

// Dense peak of all ranks' devices together, FLOP/s; 0: unknown.
double cluster_peak_flops(const sim::ClusterSpec& cluster, DType dtype);

}  // namespace zl
