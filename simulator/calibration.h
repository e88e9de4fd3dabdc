// Fits the prices of the machine at hand from traces of real runs.
// Ownership: refers to the traces while it runs. Threads: pure function.
#pragma once

#include <functional>
#include <vector>

#include "simulator/cluster/cluster_spec.h"
#include "simulator/measured.h"

namespace zl::sim {

using OnLeftOut = std::function<void(int run, double error)>;

// `machine` says how streams behave (compute_is_host, shared_cores); its own calibration is not
// used. Per number of ranks: one line per op kind and type (on the host and on a device apart,
// where they are two; products of forward passes apart), per collective and type and per route,
// host gaps; of ranks that outnumber the cores see shared_cores.h. Then the overlap loss that best
// explains the steps of runs whose streams overlapped, and the step error: of each run priced with
// what the others gave (with one run: of that run itself), at all of its moments. Where runs are
// the middle of several, those of one are not judged. Throws Error{invalid} when no trace has two
// timed steps. on_left_out: of each run that is judged, its error as step_error().
Calibration fit(const std::vector<MeasuredTrace>& traces, const ClusterSpec& machine,
                const OnLeftOut& on_left_out = {});

// Seconds of a step after the first, on average.
double predicted_step(const Trace& trace, const ClusterSpec& cluster);

// Median step time of a real run over the predicted one, minus 1; steps after the first.
double step_error(const MeasuredTrace& measured, const ClusterSpec& cluster);

}  // namespace zl::sim
