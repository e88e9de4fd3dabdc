// The price of one trace event on a cluster: how long it runs when nothing disturbs it.
// Ownership: CostModel refers to its ClusterSpec, which must outlive it. Threads: immutable; free
// to use from any.
#pragma once

#include "core/trace/event.h"
#include "simulator/cluster/cluster_spec.h"

namespace zl::sim {

// Of one event, and of the recorded steps together: 11 days. Sums of two stay far below 64 bits.
inline constexpr std::int64_t kLongestPicoseconds = 1'000'000'000'000'000'000;

struct Price {
  std::int64_t picoseconds = 0;
  double spread = 0;  // relative standard deviation
  CostClass cost_class = CostClass::host;
  std::int64_t link_picoseconds = 0;  // it lasts at least this long, without work for the cores
};

// Looks up once what depends on the cluster alone. Ops and collectives that the calibration covers
// get its fitted times; the others the roofline and alpha-beta models of this folder.
class CostModel {
 public:
  // Of one rank of the world, whose messages go over the links of its node or to other nodes.
  explicit CostModel(const ClusterSpec& cluster, int rank = 0);

  // Of an op, collective, message, copy or transfer; zero for other events.
  Price price(const TraceEvent& event) const;

  // Host time to issue one of them, and at the end of a step.
  std::int64_t issue_picoseconds(const TraceEvent& event) const;
  std::int64_t step_picoseconds() const { return step_; }
  // And where a stream waits for another.
  std::int64_t wait_picoseconds() const { return wait_; }
  double overlap_loss() const { return overlap_loss_; }
  // Of the later of two such streams: all where a rank's own thread communicates, as alone on a
  // CPU; another one beside files.
  double overlap_loss(StreamId a, StreamId b) const;

 private:
  std::int64_t host_picoseconds(const TraceEvent& event) const;
  Price unlimited(const TraceEvent& event) const;  // by link_bandwidth
  bool is_fitted_route(std::uint8_t route) const;
  Price route(const TraceEvent& event, double units, double sharing) const;
  double copies_seconds(const TraceEvent& event) const;
  Price op(const TraceEvent& event) const;
  Price host_op(const TraceEvent& event) const;
  const LinearCost* host_line(const TraceEvent& event) const;  // null: not fitted
  Price fitted(const LinearCost& line, double units, const TraceEvent& event, CostClass cost_class,
               double sharing) const;
  Price modelled(double seconds, CostClass cost_class) const;

  const ClusterSpec& cluster_;
  int rank_;
  const RankCoefficients* coefficients_ = nullptr;
  double share_ = 1;          // of the device that one rank gets
  double node_share_ = 1;     // of its node's host memory and files
  bool knows_links_ = false;  // a lone rank's collectives are copies
  // Fitted with another number of ranks: each rank's share of the cores scales by this.
  double rank_ratio_ = 1;
  double node_ratio_ = 1;  // likewise of what a node's ranks share: the host's work and its files
  std::int64_t issue_ = 0, step_ = 0, wait_ = 0;
  double overlap_loss_ = 0, file_overlap_loss_ = 0;
  bool communicates_itself_ = false;
};

// One event alone, as CostModel(cluster).price(event).
Price op_time(const TraceEvent& event, const ClusterSpec& cluster);

// Of an op kind, for uncertainties.
CostClass cost_class_of(std::uint8_t op_kind);

}  // namespace zl::sim
