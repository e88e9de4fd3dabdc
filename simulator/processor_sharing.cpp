#include "simulator/processor_sharing.h"

#include <algorithm>
#include <map>

namespace zl::sim {
namespace {

// By how many ranks more work from an instant on.
using Changes = std::map<std::int64_t, int>;

void add_changes(WorkingRanks work, Changes& changes) {
  std::ranges::sort(work.times, {}, &EventTime::start);
  std::int64_t until = INT64_MIN;
  for (const EventTime& time : work.times) {
    const std::int64_t from = std::max(time.start, until);
    if (time.end <= from) continue;
    changes[from] += work.ranks;
    changes[time.end] -= work.ranks;
    until = time.end;
  }
}

}  // namespace

ClusterSpec with_all_at_work(ClusterSpec cluster) {
  if (shared_cores(cluster).matter()) cluster.shared_cores = cluster.devices;
  return cluster;
}

SharedClock::SharedClock(const std::vector<WorkingRanks>& all, SharedCores shared) : turns_(1) {
  Changes changes;
  for (const WorkingRanks& each : all) add_changes(each, changes);
  int working = 0;
  for (const auto& [time, more] : changes) {
    working += more;
    const double pace = static_cast<double>(std::max(shared.cores, working)) / shared.ranks;
    turns_.push_back({time, passed(time), pace});
  }
}

const SharedClock::Turn& SharedClock::turn_at(std::int64_t time) const {
  const auto next = std::ranges::upper_bound(turns_, time, {}, &Turn::from);
  return next == turns_.begin() ? turns_.front() : *(next - 1);
}

double SharedClock::passed(std::int64_t time) const {
  const Turn& turn = turn_at(time);
  return turn.passed + turn.pace * static_cast<double>(time - turn.from);
}

double SharedClock::pace(EventTime time) const {
  if (time.end <= time.start) return turn_at(time.start).pace;
  return (passed(time.end) - passed(time.start)) / static_cast<double>(time.end - time.start);
}

}  // namespace zl::sim
