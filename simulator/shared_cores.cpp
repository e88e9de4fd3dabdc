#include "simulator/shared_cores.h"

#include <algorithm>

#include "simulator/calibration.h"
#include "simulator/cost/least_squares.h"
#include "simulator/timeline.h"
#include "simulator/typical_moments.h"

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
  for (auto* lines : {&prices.routes, &prices.large_routes}) {
    std::for_each(lines->begin(), lines->end(), change);
  }
}

RankCoefficients scaled(RankCoefficients prices, double factor) {
  for_each_line(prices, [factor](LinearCost& line) {
    line.fixed *= factor, line.per_unit *= factor, line.per_byte *= factor;
  });
  prices.seconds_per_event *= factor;
  prices.seconds_per_step *= factor;
  prices.seconds_per_wait *= factor;
  return prices;
}

// How often in a step after the first.
template <class Counts>
double per_step(const Trace& trace, const Counts& counts) {
  std::int64_t found = 0;
  int first = 0, last = 0;
  for (const TraceEvent& event : trace.events()) {
    if (event.scope.step == StepPrice::kSetup) continue;
    if (first == 0) first = event.scope.step;
    last = event.scope.step;
    found += last > first && counts(event) ? 1 : 0;
  }
  return static_cast<double>(found) / std::max(1, last - first);
}

// All ranks meet.
bool is_meeting(const TraceEvent& event) {
  return event.type == EventType::collective && event.k > 1;
}

bool is_wait(const TraceEvent& event) { return event.type == EventType::wait; }

struct Overhead {
  double factor = 1, meeting_seconds = 0, wait_seconds = 0;
};

// A step takes factor * priced + meeting_seconds * meetings + wait_seconds * waits. A run that
// other work of the machine slowed down draws none of them with it.
Overhead fit_overhead(const std::vector<MeasuredTrace>& runs, const ClusterSpec& cluster) {
  std::vector<Terms> rows;
  for (const MeasuredTrace& run : runs) {
    const double measured = typical_step(run);
    rows.push_back({predicted_step(*run.trace, cluster) / measured,
                    per_step(*run.trace, is_meeting) / measured,
                    per_step(*run.trace, is_wait) / measured});
  }
  const Terms found = fit_ones(rows);
  if (found[0] == 0) return {};
  return {found[0], found[1], found[2]};
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
  shared.seconds_per_wait += overhead.wait_seconds;
  for (auto* table : {&shared.collectives, &shared.large_collectives}) {
    for (auto& row : *table) {
      for (LinearCost& line : row) line.fixed += overhead.meeting_seconds;
    }
  }
  return shared;
}

}  // namespace zl::sim
