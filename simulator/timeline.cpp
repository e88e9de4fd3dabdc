#include "simulator/timeline.h"

#include <algorithm>
#include <cmath>
#include <deque>
#include <string>
#include <utility>

#include "core/base/error.h"
#include "simulator/error_bar.h"
#include "simulator/meetings.h"
#include "simulator/scheduler.h"

namespace zl::sim {
namespace {

[[noreturn]] void deadlock(const std::deque<Scheduler>& ranks) {
  std::string where;
  for (const Scheduler& rank : ranks) {
    if (!rank.done()) where += (where.empty() ? "" : "; ") + rank.stuck_at();
  }
  throw Error(ErrorCode::infeasible,
              "deadlock: ranks wait for what no other rank sends or runs: " + where);
}

// The events of all classes in time.
class Layout {
 public:
  // paces: of each class; none: all ranks work.
  Layout(std::span<const RankTrace> traces, const ClusterSpec& cluster,
         std::vector<EventPaces> paces = {})
      : meetings_(traces), steady_(traces.size()) {
    paces.resize(traces.size());
    for (std::size_t i = 0; i < traces.size(); ++i) {
      ranks_.emplace_back(traces[i], i, cluster, meetings_, traces.size() > 1 ? &steady_ : nullptr,
                          std::move(paces[i]));
    }
    run();
  }
  Layout(const Layout&) = delete;
  Layout& operator=(const Layout&) = delete;

  std::vector<EventPaces> paces(const ClusterSpec& cluster) const {
    std::vector<WorkingRanks> working;
    for (const Scheduler& rank : ranks_) working.push_back(rank.working());
    const SharedClock clock(working, shared_cores(cluster));
    std::vector<EventPaces> paces;
    for (const Scheduler& rank : ranks_) paces.push_back(rank.paces(clock));
    return paces;
  }
  std::vector<Timeline> timelines() {
    std::vector<Timeline> timelines;
    for (Scheduler& rank : ranks_) timelines.push_back(rank.finish());
    return timelines;
  }

 private:
  void run() {
    const auto is_done = [](const Scheduler& rank) { return rank.done(); };
    while (!std::all_of(ranks_.begin(), ranks_.end(), is_done)) {
      bool moved = false;
      for (Scheduler& rank : ranks_) moved |= rank.advance();
      if (moved) continue;
      for (Scheduler& rank : ranks_) moved |= rank.issue_next();
      if (!moved) deadlock(ranks_);
    }
    if (const std::string left = meetings_.unreceived(); !left.empty()) {
      throw Error(ErrorCode::infeasible, "deadlock: " + left);
    }
  }

  Meetings meetings_;
  SteadyRounds steady_;
  std::deque<Scheduler> ranks_;
};

}  // namespace

std::vector<Timeline> price(std::span<const RankTrace> traces, const ClusterSpec& cluster) {
  Layout all_work(traces, cluster);
  const bool may_wait = traces.size() > 1;
  if (!may_wait || !shared_cores(cluster).matter()) return all_work.timelines();
  return Layout(traces, cluster, all_work.paces(cluster)).timelines();
}

Timeline price(const Trace& trace, const ClusterSpec& cluster) {
  const RankTrace all{&trace};
  return std::move(price(std::span(&all, 1), cluster).front());
}

std::int64_t StepPrice::low() const {
  const double low = static_cast<double>(duration) * std::exp(-kNineInTen * spread);
  return std::max(static_cast<std::int64_t>(low), std::min(least, duration));
}

std::int64_t StepPrice::high() const {
  constexpr double kMost = 0x1p62;
  const double high = static_cast<double>(duration) * std::exp(kNineInTen * spread);
  return static_cast<std::int64_t>(std::min(high, kMost));
}

}  // namespace zl::sim
