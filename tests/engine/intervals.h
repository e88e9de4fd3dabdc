// When streams of a traced run worked, and how much of one's time another covers.
// Ownership: values. Threads: pure functions.
#pragma once

#include <algorithm>
#include <initializer_list>
#include <utility>
#include <vector>

#include "core/device/device.h"
#include "core/trace/trace.h"

namespace zl::test {

using Interval = std::pair<std::int64_t, std::int64_t>;  // nanoseconds

// When one of `streams` worked in the steps `first` to `last`, as disjoint intervals in order.
inline std::vector<Interval> busy(const Trace& trace, std::initializer_list<StreamId> streams,
                                  int first, int last) {
  std::vector<Interval> times, merged;
  for (const TraceEvent& event : trace.events()) {
    const bool wanted =
        std::count(streams.begin(), streams.end(), static_cast<StreamId>(event.stream)) > 0;
    const bool counts = event.scope.step >= first && event.scope.step <= last;
    if (!wanted || !counts || event.timing.end_ns == 0) continue;
    times.emplace_back(event.timing.start_ns, event.timing.end_ns);
  }
  std::sort(times.begin(), times.end());
  for (const auto& [start, end] : times) {
    if (merged.empty() || start > merged.back().second) {
      merged.emplace_back(start, end);
    } else {
      merged.back().second = std::max(merged.back().second, end);
    }
  }
  return merged;
}

inline double total_seconds(const std::vector<Interval>& times) {
  std::int64_t sum = 0;
  for (const auto& [start, end] : times) sum += end - start;
  return 1e-9 * static_cast<double>(sum);
}

// Seconds of both.
inline double common_seconds(const std::vector<Interval>& a, const std::vector<Interval>& b) {
  std::int64_t sum = 0;
  for (std::size_t i = 0, j = 0; i < a.size() && j < b.size();) {
    sum += std::max<std::int64_t>(
        0, std::min(a[i].second, b[j].second) - std::max(a[i].first, b[j].first));
    a[i].second < b[j].second ? ++i : ++j;
  }
  return 1e-9 * static_cast<double>(sum);
}

}  // namespace zl::test
