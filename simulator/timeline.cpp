#include "simulator/timeline.h"

#include <algorithm>
#include <cmath>
#include <deque>
#include <string>

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

}  // namespace

std::vector<Timeline> price(std::span<const RankTrace> traces, const ClusterSpec& cluster) {
  Meetings meetings(traces);
  SteadyRounds steady(traces.size());
  std::deque<Scheduler> ranks;
  for (std::size_t i = 0; i < traces.size(); ++i) {
    ranks.emplace_back(traces[i], i, cluster, meetings, traces.size() > 1 ? &steady : nullptr);
  }
  const auto is_done = [](const Scheduler& rank) { return rank.done(); };
  while (!std::all_of(ranks.begin(), ranks.end(), is_done)) {
    bool moved = false;
    for (Scheduler& rank : ranks) moved |= rank.advance();
    if (moved) continue;
    for (Scheduler& rank : ranks) moved |= rank.issue_next();
    if (!moved) deadlock(ranks);
  }
  if (const std::string left = meetings.unreceived(); !left.empty()) {
    throw Error(ErrorCode::infeasible, "deadlock: " + left);
  }
  std::vector<Timeline> timelines;
  for (Scheduler& rank : ranks) timelines.push_back(rank.finish());
  return timelines;
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
