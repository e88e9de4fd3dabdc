#include "simulator/late_reductions.h"

#include <algorithm>
#include <cstdint>

#include "core/base/stream.h"

namespace zl::sim {

std::set<std::size_t> late_reductions(const Trace& trace, const std::vector<EventTime>& times) {
  std::set<std::size_t> late;
  std::int64_t first = INT64_MAX;  // start of the work that follows
  for (std::size_t i = trace.events().size(); i-- > 0;) {
    const TraceEvent& event = trace.events()[i];
    if (event.stream != static_cast<std::uint8_t>(StreamId::compute) || !takes_time(event)) {
      continue;
    }
    const bool reduces = event.type == EventType::collective && event.scope.phase == Phase::reduce;
    if (reduces && times[i].start > first) {
      late.insert(i);
    } else {
      first = std::min(first, times[i].start);
    }
  }
  return late;
}

}  // namespace zl::sim
