// The software that trains on a cluster, as far as its speed differs from this project's own core.
// Ownership: a value. Threads: value type; the functions are pure.
#pragma once

#include <string>
#include <string_view>

#include "simulator/cluster/cluster_spec.h"

namespace zl::sim {

// A cluster's rates are what the best kernels reach, issued from C++. Frameworks reach a share of
// them, since they run several kernels where this core runs one, and issue them more slowly. A
// stack prices time alone: bytes stay those of this core's ops.
struct Stack {
  std::string name;
  double launch_seconds = 0;  // of the host, per op of this core
  double step_seconds = 0;    // of the host, per step
  // Shares of the cluster's rates, above 0 and at most 1: matrix products, everything that streams
  // through memory, links between devices.
  double gemm = 1, memory = 1, links = 1;
  bool materialized_attention = false;  // not fused: see DeviceSpec
  double overlap_loss = 0;              // as ClusterSpec's
  double step_error = 0;  // as ClusterSpec's, of published runs that the stack was not fitted to
};

// Throws Error{invalid} naming the source and the key, as parse_cluster.
Stack parse_stack(std::string_view json, const std::string& source);

// The cluster's devices under that software. Throws Error{invalid} for a cluster that was measured
// (its calibration holds the software already) or whose processors are the host's.
ClusterSpec with_stack(ClusterSpec cluster, const Stack& stack);

}  // namespace zl::sim
