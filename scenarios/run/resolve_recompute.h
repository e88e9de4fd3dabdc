// How much recomputation makes a strategy fit.
// Ownership: values. Threads: pure function.
#pragma once

#include "core/device/device.h"
#include "scenarios/files/scenario.h"

namespace zl {

// Fills in `automatic` recomputation: the fewest blocks that fit device.memory beside
// device.workspace, found on the recording device; host memory counts where the device is the host.
// Of a pipeline each rank its own number, where the software has that. Leaves other modes alone.
Strategy resolve_recompute(const Scenario& scenario, Strategy strategy,
                           const DeviceProperties& device);

}  // namespace zl
