// Collectives as latency plus bytes over the bottleneck (alpha-beta), the fastest of NCCL's
// algorithms and protocols, as its tuner chooses (NVIDIA/nccl src/graph/tuning.cc).
// Threads: pure functions.
#pragma once

#include "core/trace/event.h"
#include "simulator/cluster/cluster_spec.h"

namespace zl::sim {

// Where the ranks of one group sit when the world's ranks fill the nodes one after the other.
struct Placement {
  int ranks = 1, nodes = 1;
  int per_node = 1;  // most ranks of the group in a node
  int smallest = 1;  // fewest
};
// Of a group that starts at a node's first device; `stride`: ranks of the world between neighbours.
Placement place(int ranks, int stride, int node_devices);

// Bytes/s of a ring through all ranks. Within a node: one device's link. Between nodes each node is
// entered once per ring, and the rings of the group's devices use their adapters together; the node
// with the fewest ranks has the fewest adapters. The other devices' adapters serve the groups that
// lie between, which run at once.
double ring_rate(const Placement& placement, const ClusterSpec& cluster);

// Of a collective event: k ranks, its wire bytes and payload.
double collective_seconds(const TraceEvent& event, const ClusterSpec& cluster);

// Of a message between two ranks of the world: over the link of their node, or between nodes.
double message_seconds(std::int64_t bytes, int from, int to, const ClusterSpec& cluster);

}  // namespace zl::sim
