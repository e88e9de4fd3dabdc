// `zerolab calibrate`: measures this machine by training small models on it and fits the prices of
// "local" (its processor) or "local-cuda" (its GPUs). Ownership: values. Threads: blocks while it
// trains.
#pragma once

#include "scenarios/machine/calibration_options.h"
#include "simulator/cluster/cluster_spec.h"

namespace zl {

// The fitted cluster. The models trained are not those of the catalogue. Does not write anything:
// the caller stores cluster_json() at local_cluster_path of the backend's cluster. A GPU of the
// catalogue keeps its data-sheet peak and gets the measured share of it; the peaks of other
// machines are measured ones.
sim::ClusterSpec calibrate_machine(const CalibrationOptions& options);

}  // namespace zl
