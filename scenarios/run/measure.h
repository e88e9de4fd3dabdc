// From a timeline or a measured trace to the times of a result.
// Ownership: values. Threads: pure functions.
#pragma once

#include "core/base/dtype.h"
#include "core/trace/trace.h"
#include "core/train/run_result.h"
#include "simulator/timeline.h"

namespace zl {

// Of the steps after the first, which warms up, where there are more; zeros without steps.
StepTime step_time_of(std::vector<double> step_seconds);

// Per step the duration of the step that stands for it; the median step's duration, error bar and
// parts: with the wait for the host, which has no field, they add up to the median.
void write_predicted_times(const sim::Timeline& timeline,
                           const std::vector<std::int64_t>& stand_ins, RunResult& result);

// The step time of result.step_seconds, and its median split as the trace splits the steps that
// count.
void write_measured_times(const Trace& trace, RunResult& result);

// Dense peak of all ranks' devices together, FLOP/s; 0: unknown.
double cluster_peak_flops(const sim::ClusterSpec& cluster, DType dtype);

}  // namespace zl
