// How fast the attention kernels of public software run, from published benchmarks.
// Threads: pure functions.
#pragma once

#include <cstdint>

#include "simulator/cluster/device_spec.h"
#include "simulator/cost/attention.h"

namespace zl::sim {

// What one call computes: heads of all sequences, queries (as many keys), head size.
struct AttentionWork {
  double planes = 0, tokens = 0, head = 0;
  bool causal = false;
};

// FLOP/s of useful work (pairs that the mask lets see only) in 16 bits; 0 for kernels that have no
// curve (core, unfused). A generation without a measured curve has that of Ampere, in proportion to
// its peak.
double attention_speed(AttentionKernel kernel, AttentionPass pass, const AttentionWork& work,
                       const DeviceSpec& device);

}  // namespace zl::sim
