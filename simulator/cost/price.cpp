#include "simulator/cost/price.h"

#include <algorithm>

#include "core/ops/attention.h"
#include "core/ops/matmul.h"
#include "simulator/cost/collective.h"
#include "simulator/cost/group_of.h"
#include "simulator/cost/roofline.h"

namespace zl::sim {
namespace {

std::int64_t picoseconds(double seconds) {
  constexpr auto longest = static_cast<double>(kLongestPicoseconds);
  return static_cast<std::int64_t>(std::min(seconds * 1e12 + 0.5, longest));
}

const LinearCost& nearer_line(const LinearCost& small, const LinearCost& large,
                              const TraceEvent& event) {
  const bool is_large = large.samples > 0 && priced_bytes(event) >= large.from_bytes;
  return is_large ? large : small;
}

template <class Lines>
const LinearCost& line_of(const Lines& small, const Lines& large, const TraceEvent& event) {
  const auto dtype = static_cast<std::size_t>(event.dtype);
  return nearer_line(small[event.kind][dtype], large[event.kind][dtype], event);
}

const LinearCost& op_line(const RankCoefficients& fitted, const TraceEvent& event) {
  const auto [small, large] = op_lines(fitted, product_variant(event));
  const LinearCost& line = line_of(small, large, event);
  return line.samples > 0 ? line : line_of(fitted.ops, fitted.large_ops, event);
}

}  // namespace

CostClass cost_class_of(std::uint8_t op_kind) {
  if (op_kind == kOpKind<Gemm>) return CostClass::gemm;
  const bool attention =
      op_kind == kOpKind<AttentionForward> || op_kind == kOpKind<AttentionBackward>;
  return attention ? CostClass::attention : CostClass::memory;
}

CostModel::CostModel(const ClusterSpec& cluster, int rank)
    : cluster_(cluster),
      rank_(rank),
      issue_(picoseconds(cluster.device.launch_seconds)),
      step_(picoseconds(cluster.step_seconds)) {
  node_share_ = 1.0 / std::min(cluster.devices, cluster.node_devices);
  const bool shared = cluster.shared_cores > 0;
  if (shared) share_ = 1.0 / cluster.devices;
  communicates_itself_ = shared && cluster.devices == 1;
  // Compute threads of all ranks may fill the cores, so that a busy second stream takes theirs.
  const bool full = shared && 2 * cluster.devices > cluster.shared_cores;
  overlap_loss_ = file_overlap_loss_ = full ? 1.0 : cluster.overlap_loss;
  if (!cluster.calibration) return;
  coefficients_ = &cluster.calibration->nearest(cluster.devices);
  if (shared) rank_ratio_ = static_cast<double>(cluster.devices) / coefficients_->ranks;
  node_ratio_ = shared ? rank_ratio_
                       : 1 / (node_share_ * std::min(coefficients_->ranks, cluster.node_devices));
  issue_ = picoseconds(coefficients_->seconds_per_event);
  step_ = picoseconds(coefficients_->seconds_per_step);
  wait_ = picoseconds(coefficients_->seconds_per_wait);
  knows_links_ = coefficients_->ranks > 1 || cluster.devices == 1;
  overlap_loss_ = cluster.calibration->overlap_loss;
  file_overlap_loss_ = cluster.calibration->file_overlap_loss.value_or(overlap_loss_);
}

double CostModel::overlap_loss(StreamId a, StreamId b) const {
  const auto is_own = [](StreamId each) {
    return each == StreamId::compute || each == StreamId::communication;
  };
  const auto is_file = [](StreamId each) {
    return each == StreamId::file_in || each == StreamId::file_out;
  };
  if (is_file(a) != is_file(b)) return file_overlap_loss_;
  return communicates_itself_ && is_own(a) && is_own(b) ? 1 : overlap_loss_;
}

std::int64_t CostModel::issue_picoseconds(const TraceEvent& event) const {
  return cluster_.device.software.timed_apart ? 0 : host_picoseconds(event);
}

std::int64_t CostModel::host_picoseconds(const TraceEvent& event) const {
  const SoftwareKernels& software = cluster_.device.software;
  if (event.type == EventType::collective && software.collective_host_seconds >= 0) {
    return picoseconds(software.collective_host_seconds);
  }
  if (event.type == EventType::message && software.message_host_seconds >= 0) {
    return picoseconds(software.message_host_seconds);
  }
  if (event.type != EventType::op) return issue_;
  return static_cast<std::int64_t>(static_cast<double>(issue_) * software.ops[event.kind].kernels);
}

// What the software copies on the device, into and out of the buffers of a collective; packed signs
// through the host.
double CostModel::copies_seconds(const TraceEvent& event) const {
  const SoftwareKernels& software = cluster_.device.software;
  if (event.k < 2 || static_cast<Axis>(event.axis) == Axis::tensor) return 0;
  const auto ranks = static_cast<double>(event.k);
  const double whole = static_cast<double>(event.wire_bytes) * ranks / (ranks - 1);
  if (event.dtype == DType::u8) return software.staged_copies * whole / cluster_.host.rate();
  const auto kind = static_cast<CollectiveKind>(event.kind);
  const double copies = kind == CollectiveKind::all_gather       ? software.gather_copies
                        : kind == CollectiveKind::reduce_scatter ? software.scatter_copies
                                                                 : 0;
  return copies * whole / (cluster_.device.memory_bandwidth * cluster_.device.memory_efficiency);
}

Price CostModel::price(const TraceEvent& event) const {
  Price price = unlimited(event);
  if (cluster_.device.software.timed_apart) {
    price.picoseconds = std::max(price.picoseconds, host_picoseconds(event));
  }
  const bool sends = event.type == EventType::collective || event.type == EventType::message;
  if (sends && cluster_.link_bandwidth > 0) {
    price.link_picoseconds =
        picoseconds(static_cast<double>(event.wire_bytes) / cluster_.link_bandwidth);
  }
  return price;
}

Price CostModel::unlimited(const TraceEvent& event) const {
  switch (event.type) {
    case EventType::op:
      return op(event);
    case EventType::collective:
      if (knows_links_) {
        const LinearCost& line =
            line_of(coefficients_->collectives, coefficients_->large_collectives, event);
        const auto segments = static_cast<double>(event.n);
        if (line.samples > 0) {
          return fitted(line, segments, event, CostClass::collective, rank_ratio_);
        }
      }
      return modelled(collective_seconds(event, cluster_) + copies_seconds(event),
                      CostClass::collective);
    case EventType::message:
      return modelled(message_seconds(event.bytes_read + event.bytes_written, rank_,
                                      peer_of(event, rank_), cluster_),
                      CostClass::collective);
    case EventType::copy:
      if (is_fitted_route(event.kind)) return route(event, 0, rank_ratio_);
      return modelled(cluster_.host.hop_seconds.back() +
                          static_cast<double>(event.bytes_read) / cluster_.host.rate(),
                      CostClass::copy);
    case EventType::transfer:
      if (is_fitted_route(event.kind)) {
        return route(event, static_cast<double>(event.m), node_ratio_);
      }
      return modelled(
          cluster_.storage.hop_seconds.back() +
              static_cast<double>(event.bytes_read) / (cluster_.storage.rate() * node_share_),
          CostClass::copy);
    default:
      return {};
  }
}

bool CostModel::is_fitted_route(std::uint8_t route) const {
  return coefficients_ != nullptr && coefficients_->routes[route].samples > 0;
}

Price CostModel::route(const TraceEvent& event, double units, double sharing) const {
  const LinearCost& line = nearer_line(coefficients_->routes[event.kind],
                                       coefficients_->large_routes[event.kind], event);
  return fitted(line, units, event, CostClass::copy, sharing);
}

const LinearCost* CostModel::host_line(const TraceEvent& event) const {
  if (coefficients_ == nullptr) return nullptr;
  const LinearCost& line =
      coefficients_->host_ops[event.kind][static_cast<std::size_t>(event.dtype)];
  return line.samples > 0 ? &line : nullptr;
}

// Updates off the device stream through the host's memory.
Price CostModel::host_op(const TraceEvent& event) const {
  return modelled(priced_bytes(event) / (cluster_.host_memory_bandwidth * node_share_),
                  CostClass::memory);
}

Price CostModel::op(const TraceEvent& event) const {
  if (event.stream == static_cast<std::uint8_t>(StreamId::host)) {
    const LinearCost* line = host_line(event);
    if (line != nullptr) return fitted(*line, event.flops, event, CostClass::memory, node_ratio_);
    if (!cluster_.compute_is_host) return host_op(event);
  }
  const CostClass cost_class = cost_class_of(event.kind);
  if (coefficients_ != nullptr) {
    const LinearCost& line = op_line(*coefficients_, event);
    if (line.samples > 0) return fitted(line, event.flops, event, cost_class, rank_ratio_);
  }
  return modelled(op_cost(event, cluster_.device, share_).seconds, cost_class);
}

Price CostModel::fitted(const LinearCost& line, double units, const TraceEvent& event,
                        CostClass cost_class, double sharing) const {
  const double seconds = line.seconds(units, priced_bytes(event)) * sharing;
  const double doubt = sharing == 1 ? 1.0 : 2.0;  // no run with this number of ranks was seen
  return {picoseconds(seconds), line.spread * doubt, cost_class};
}

Price CostModel::modelled(double seconds, CostClass cost_class) const {
  return {picoseconds(seconds), cluster_.spread[static_cast<std::size_t>(cost_class)], cost_class};
}

Price op_time(const TraceEvent& event, const ClusterSpec& cluster) {
  return CostModel(cluster).price(event);
}

}  // namespace zl::sim
