#include "simulator/planner/plan_prices.h"

#include <algorithm>

#include "simulator/cost/collective.h"

namespace zl::sim {
namespace {

// Adam reads a gradient, both moments and the master weight, and writes the latter three.
constexpr double kUpdateBytes = 28;
// A sum reads both and writes one.
constexpr double kSumAccesses = 3;

}  // namespace

double PlanPrices::collective(CollectiveKind kind, Axis axis, const Mesh& mesh,
                              double bytes) const {
  const auto ranks = static_cast<double>(mesh.size(axis));
  if (ranks <= 1) return 0;
  TraceEvent event{.type = EventType::collective, .kind = static_cast<std::uint8_t>(kind)};
  event.stride = mesh.stride(axis);
  event.k = mesh.size(axis);
  const double rounds = kind == CollectiveKind::all_reduce ? 2 : 1;
  event.wire_bytes = static_cast<std::int64_t>(rounds * bytes * (ranks - 1) / ranks);
  return kPicoseconds * collective_seconds(event, cluster_);
}

double PlanPrices::reduce(const PlanCut& cut, double parameters) const {
  const double bytes = bytes_of(cut.state.precision.communication_dtype) * parameters / cut.t;
  const bool whole = cut.state.zero.stage == 0;
  return collective(whole ? CollectiveKind::all_reduce : CollectiveKind::reduce_scatter,
                    cut.mesh.sharding(), cut.mesh, bytes);
}

double PlanPrices::average_copies(const PlanCut& cut, double parameters) const {
  const double bytes =
      bytes_of(cut.state.precision.grad_accum_dtype) * parameters / (cut.t * cut.shard);
  return collective(CollectiveKind::all_reduce, Axis::replicate, cut.mesh, bytes);
}

double PlanPrices::gather(const PlanCut& cut, double parameters) const {
  if (cut.state.zero.stage == 0) return 0;
  const double bytes = bytes_of(cut.state.precision.compute_dtype) * parameters / cut.t;
  return collective(CollectiveKind::all_gather, cut.mesh.sharding(), cut.mesh, bytes);
}

double PlanPrices::node_ranks() const { return std::min(cluster_.devices, cluster_.node_devices); }

double PlanPrices::to_host(const PlanCut& cut, double parameters) const {
  const OffloadConfig& offload = cut.state.offload;
  if (cut.state.zero.stage < 2 || offload.optimizer == Tier::device || offload.ratio < 1) return 0;
  const double bytes =
      bytes_of(cut.state.precision.grad_accum_dtype) * parameters / (cut.t * cut.shard);
  const double added =
      cut.m > 1 ? kSumAccesses * bytes * node_ranks() / cluster_.host_memory_bandwidth : 0;
  return kPicoseconds * std::max(bytes / cluster_.host.rate(), added);
}

double PlanPrices::update(const PlanCut& cut, double parameters) const {
  const double own = parameters / (cut.t * (cut.state.zero.stage == 0 ? 1 : cut.shard));
  const bool on_host = cut.state.offload.optimizer != Tier::device;
  const double rate =
      on_host ? cluster_.host_memory_bandwidth / node_ranks() : cluster_.device.memory_bandwidth;
  return kPicoseconds * kUpdateBytes * own / rate;
}

double PlanPrices::message(const PlanCut& cut, std::int64_t bytes) const {
  return kPicoseconds * message_seconds(bytes, 0, cut.mesh.stride(Axis::pipeline), cluster_);
}

}  // namespace zl::sim
