#include "simulator/cost/collective.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/device/communicator.h"

namespace zl::sim {
namespace {

// Share of the bandwidth left by each protocol's flags.
constexpr double kProtocolRate[kProtocols] = {0.4, 0.92, 1.0};
constexpr double kTreeRate = 0.92;

double ring_latency(CollectiveKind kind, const Placement& at, const ClusterSpec& cluster,
                    std::size_t protocol) {
  const int rounds = kind == CollectiveKind::all_reduce ? 2 : 1;
  const int between = at.nodes > 1 ? rounds * at.nodes : 0;
  const int within = std::max(0, rounds * (at.ranks - 1) - between);
  return within * cluster.intra.hop_seconds[protocol] +
         between * cluster.inter.hop_seconds[protocol];
}

// Chains within nodes, a tree between them, up and down.
double tree_latency(const Placement& at, const ClusterSpec& cluster, std::size_t protocol) {
  return 2 * ((at.per_node - 1) * cluster.intra.hop_seconds[protocol] +
              std::log2(at.nodes) * cluster.inter.hop_seconds[protocol]);
}

// Every rank sends a chunk to every other: within its node over its own link, out of the node over
// its share of the adapters, both at once.
double all_to_all_transfer(double bytes, const Placement& at, const ClusterSpec& cluster) {
  const double chunk = bytes / std::max(1, at.ranks - 1);
  const double within = chunk * (at.per_node - 1) / cluster.intra.rate();
  if (at.nodes == 1) return within;
  const double out = cluster.inter.rate() * cluster.device.software.connections;
  return std::max(within, chunk * (at.ranks - at.per_node) / out);
}

// NCCL adds up in the switch from five devices and 2 MiB on (measured on eight H200).
bool adds_in_switch(CollectiveKind kind, double bytes, const Placement& at,
                    const ClusterSpec& cluster) {
  constexpr int kLeastRanks = 5;
  constexpr double kLeastBytes = 2 * (1 << 20);
  return kind == CollectiveKind::all_reduce && at.nodes == 1 && at.ranks >= kLeastRanks &&
         bytes >= 2 * kLeastBytes * (at.ranks - 1) / at.ranks && cluster.intra.all_reduce_rate > 0;
}

// A broadcast passes the whole payload through every rank; wire_bytes is its average share.
double bytes_through_one_rank(const TraceEvent& event) {
  const auto kind = static_cast<CollectiveKind>(event.kind);
  return static_cast<double>(kind == CollectiveKind::broadcast ? event.bytes_read
                                                               : event.wire_bytes);
}

}  // namespace

Placement place(int ranks, int stride, int node_devices) {
  if (stride % node_devices == 0) return {.ranks = ranks, .nodes = ranks};
  if (node_devices % stride == 0) {
    const int full = node_devices / stride, nodes = (ranks + full - 1) / full;
    return {ranks, nodes, std::min(ranks, full), ranks - (nodes - 1) * full};
  }
  Placement at{.ranks = ranks, .nodes = 0, .per_node = 0, .smallest = ranks};
  for (int first = 0; first < ranks; ++at.nodes) {
    const int node = first * stride / node_devices;
    const int after = std::min(ranks, ((node + 1) * node_devices + stride - 1) / stride);
    at.per_node = std::max(at.per_node, after - first);
    at.smallest = std::min(at.smallest, after - first);
    first = after;
  }
  return at;
}

double ring_rate(const Placement& placement, const ClusterSpec& cluster) {
  if (placement.nodes == 1) return cluster.intra.rate();
  const double most = cluster.device.software.adapters;
  const double adapters =
      most > 0 ? std::min<double>(placement.smallest, most) : placement.smallest;
  return std::min(cluster.intra.rate(), cluster.inter.rate() * adapters);
}

double collective_seconds(const TraceEvent& event, const ClusterSpec& cluster) {
  const Placement at = place(static_cast<int>(event.k), event.stride, cluster.node_devices);
  if (at.ranks == 1) {
    // A copy on the device, or nothing when in place.
    return static_cast<double>(event.bytes_read + event.bytes_written) /
           (cluster.device.memory_bandwidth * cluster.device.memory_efficiency);
  }
  const auto kind = static_cast<CollectiveKind>(event.kind);
  const double bytes = bytes_through_one_rank(event);
  const double rate = adds_in_switch(kind, bytes, at, cluster)
                          ? std::max(cluster.intra.all_reduce_rate, ring_rate(at, cluster))
                          : ring_rate(at, cluster);
  const double full_rate_transfer =
      kind == CollectiveKind::all_to_all ? all_to_all_transfer(bytes, at, cluster) : bytes / rate;
  const bool tree = kind == CollectiveKind::all_reduce && at.nodes > 1;
  double best = std::numeric_limits<double>::infinity();
  for (std::size_t protocol = 0; protocol < kProtocols; ++protocol) {
    const double transfer = full_rate_transfer / kProtocolRate[protocol];
    best = std::min(best, ring_latency(kind, at, cluster, protocol) + transfer);
    if (tree) best = std::min(best, tree_latency(at, cluster, protocol) + transfer / kTreeRate);
  }
  return cluster.collective_seconds + best;
}

double message_seconds(std::int64_t bytes, int from, int to, const ClusterSpec& cluster) {
  const bool near = from / cluster.node_devices == to / cluster.node_devices;
  const Link& link = near ? cluster.intra : cluster.inter;
  return link.hop_seconds.back() + static_cast<double>(bytes) / link.rate();
}

}  // namespace zl::sim
