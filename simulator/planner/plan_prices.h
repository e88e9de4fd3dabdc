// Picoseconds that what a configuration sends and updates takes at least, all of it at once.
// Ownership: refers to the cluster. Threads: immutable; free to use from any.
#pragma once

#include <cstdint>

#include "core/base/dtype.h"
#include "simulator/cluster/cluster_spec.h"
#include "simulator/planner/plan_cut.h"

namespace zl::sim {

inline constexpr double kPicoseconds = 1e12;
inline double bytes_of(DType type) { return static_cast<double>(size_of(type)); }

class PlanPrices {
 public:
  explicit PlanPrices(const ClusterSpec& cluster) : cluster_(cluster) {}

  // Of so many parameters. Gradients, of a micro-batch or a step.
  double reduce(const PlanCut& cut, double parameters) const;
  // Of hybrid sharding's copies, once a step.
  double average_copies(const PlanCut& cut, double parameters) const;
  double gather(const PlanCut& cut, double parameters) const;
  // What a micro-batch's gradients take to the host, and there where they are added up.
  double to_host(const PlanCut& cut, double parameters) const;
  double update(const PlanCut& cut, double parameters) const;
  // Between the nearest two ranks of a pipeline, without waiting.
  double message(const PlanCut& cut, std::int64_t bytes) const;

 private:
  double collective(CollectiveKind kind, Axis axis, const Mesh& mesh, double bytes) const;
  double node_ranks() const;  // that share the host's memory

  const ClusterSpec& cluster_;
};

}  // namespace zl::sim
