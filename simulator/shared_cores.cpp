#include "simulator/shared_cores.h"

#include <algorithm>

#include "core/base/median.h"
#include "simulator/calibration.h"
#include "simulator/cost/least_squares.h"
#include "simulator/timeline.h"

namespace zl::sim {
namespace {

template <class Change>
void for_each_line(RankCoefficients& prices, const Change& change) {
  for (auto* table :
       {&prices.ops, &prices.large_ops, &prices.forward_ops, &prices.large_forward_ops,
        &prices.gradient_ops, &prices.large_gradient_ops, &prices.host_ops}) {
    for (auto& row : *table) std::for_each(row.begin(), row.end(), change);
  }
  for (auto* table : {&prices.collectives, &prices.large_collectives}) {
    for (auto& row : *table) std::for_each(row.begin(), row.end(), change);
  }
  std::for_each(prices.routes.begin(), prices.routes.end(), change);
}

RankCoefficients scaled(RankCoefficients prices, double factor) {
  for_each_line(prices, [factor](LinearCost& line) {
    line.fixed *= factor, line.per_unit *= factor, line.per_byte *= factor;
  });
  prices.seconds_per_event *= factor;
  prices.seconds_per_step *= factor;
  return prices;
}

// The meetings of all ranks in a step after the first.
double meetings_per_step(const Trace& trace) {
  std::int64_t meetings = 0;
  int first = 0, last = 0;
  for (const TraceEvent& event : trace.events()) {
    if (event.scope.step == StepPrice::kSetup) continue;
    if (first == 0) first = event.scope.step;
    last = event.scope.step;
    meetings += event.type == EventType::collective && last > first && event.k > 1 ? 1 : 0;
  }
  return static_cast<double>(meetings) / std::max(1, last - first);
}

struct Overhead {
  double factor = 1, meeting_seconds = 0;
};

// A step takes factor * priced + meeting_seconds * meetings. A run that other work of the machine
// slowed down draws neither with it.
Overhead fit_overhead(const std::vector<MeasuredTrace>& runs, const ClusterSpec& cluster) {
  std::vector<Terms> rows;
  for (const MeasuredTrace& run : runs) {
    const double measured = median(step_seconds(*run.trace));
    rows.push_back({predicted_step(*run.trace, cluster) / measured,
                    meetings_per_step(*run.trace) / measured, 0});
  }
  const Terms found = fit_ones(rows);
  if (found[0] == 0) return {};
  return {found[0], found[1]};
}

}  // namespace

RankCoefficients share_cores(const RankCoefficients& base, int ranks,
                             const std::vector<MeasuredTrace>& runs, const ClusterSpec& machine) {
  RankCoefficients shared = scaled(base, static_cast<double>(ranks) / base.ranks);
  shared.ranks = ranks;
  ClusterSpec cluster = with_devices(machine, ranks);
  cluster.calibration = Calibration{.by_ranks = {shared}, .overlap_loss = 1};
  const Overhead overhead = fit_overhead(runs, cluster);
  shared = scaled(shared, overhead.factor);
  for (auto* table : {&shared.collectives, &shared.large_collectives}) {
    for (auto& row : *table) {
      for (LinearCost& line : row) line.fixed += overhead.meeting_seconds;
    }
  }
  return shared;
}

}  // namespace zl::sim
