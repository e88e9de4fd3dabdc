// Ops on one device: the larger of compute time and memory time, never below the shortest kernel
// (Williams et al. 2009, roofline), with GEMM and attention efficiencies that depend on the shape.
// Threads: pure functions.
#pragma once

#include "core/trace/event.h"
#include "simulator/cluster/device_spec.h"

namespace zl::sim {

// share: the part of the device that is this rank's (0..1].
double op_seconds(const TraceEvent& event, const DeviceSpec& device, double share);

}  // namespace zl::sim
