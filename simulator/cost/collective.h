// Collectives as latency plus bytes over the bottleneck (alpha-beta), the fastest of NCCL's
// algorithms and protocols, as its tuner chooses (NVIDIA/nccl src/graph/tuning.cc).
// Threads: pure functions.
#pragma once

#include "core/trace/event.h"
#include "simulator/cluster/cluster_spec.h"

namespace zl::sim {

// Where the ranks of one group sit when nodes fill one after the other.
struct Placement {
  int ranks = 1, nodes = 1;
  int per_node = 1;  // in a full node
  int smallest = 1;  // ranks in the last node
};
Placement place(int ranks, int node_devices);

// Bytes/s of a ring through all ranks. Within a node: one device's link. Between nodes each node is
// entered once per ring, and the rings of its devices use all their adapters together; the node
// with the fewest ranks has the fewest adapters.
double ring_rate(const Placement& placement, const ClusterSpec& cluster);

// Of a collective event: k ranks, its wire bytes and payload.
double collective_seconds(const TraceEvent& event, const ClusterSpec& cluster);

}  // namespace zl::sim
