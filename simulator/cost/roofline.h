// Ops on one device: the larger of compute time and memory time, never below the shortest kernel
// (Williams et al. 2009, roofline), with GEMM and attention efficiencies that depend on the shape.
// Threads: pure functions.
#pragma once

#include <cstdint>

#include "core/trace/event.h"
#include "simulator/cluster/device_spec.h"

namespace zl::sim {

// What an op takes as long as: its FLOPs, its bytes, or the shortest kernel.
enum class Bound : std::uint8_t { compute, memory, kernel };
const char* name_of(Bound bound);

struct OpCost {
  double seconds = 0;
  double bytes = 0;  // that the software's kernels move
  Bound bound = Bound::kernel;
};

// share: the part of the device that is this rank's (0..1].
OpCost op_cost(const TraceEvent& event, const DeviceSpec& device, double share);

}  // namespace zl::sim
