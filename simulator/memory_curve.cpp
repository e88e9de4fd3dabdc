#include "simulator/memory_curve.h"

#include <algorithm>
#include <functional>
#include <map>
#include <numeric>
#include <tuple>
#include <unordered_map>

#include "core/device/device.h"

namespace zl::sim {
namespace {

bool is_memory(const TraceEvent& event, MemorySpace space) {
  return (event.type == EventType::allocate || event.type == EventType::free) &&
         event.space == space;
}

}  // namespace

std::int64_t MemoryPoint::total() const {
  return std::accumulate(bytes.begin(), bytes.end(), std::int64_t{0});
}

std::vector<MemoryPoint> memory_over_time(const Trace& trace, const std::vector<EventTime>& times,
                                          MemorySpace space) {
  std::vector<MemoryPoint> curve;
  MemoryPoint now;
  std::int32_t index = 0;
  for (const TraceEvent& event : trace.events()) {
    if (is_memory(event, space)) {
      const bool takes = event.type == EventType::allocate;
      now.bytes[event.kind] += takes ? event.bytes_written : -event.bytes_written;
      now.event = index;
      curve.push_back(now);
    } else if (event.stream == static_cast<std::uint8_t>(StreamId::compute)) {
      now.time = std::max(now.time, times[index].end);
    }
    ++index;
  }
  return curve;
}

std::ptrdiff_t peak_point(const std::vector<MemoryPoint>& curve) {
  const auto peak = std::max_element(
      curve.begin(), curve.end(),
      [](const MemoryPoint& a, const MemoryPoint& b) { return a.total() < b.total(); });
  return peak == curve.end() ? -1 : peak - curve.begin();
}

std::int32_t peak_event(const Trace& trace, MemorySpace space) {
  std::int64_t held = 0, most = 0;
  std::int32_t index = 0, peak = -1;
  for (const TraceEvent& event : trace.events()) {
    if (is_memory(event, space)) {
      held += event.type == EventType::allocate ? event.bytes_written : -event.bytes_written;
      if (held > most) peak = index;
      most = std::max(most, held);
    }
    ++index;
  }
  return peak;
}

std::vector<LiveBlock> live_after(const Trace& trace, std::int32_t event, MemorySpace space) {
  std::unordered_map<std::int64_t, const TraceEvent*> live;  // by address
  for (std::int32_t i = 0; i <= event; ++i) {
    const TraceEvent& each = trace.events()[i];
    if (!is_memory(each, space)) continue;
    if (each.type == EventType::allocate) live[each.id] = &each;
    if (each.type == EventType::free) live.erase(each.id);
  }
  std::map<std::tuple<std::uint8_t, std::string, int>, LiveBlock> groups;
  for (const auto& [address, block] : live) {
    const int unit = block->scope.unit;
    LiveBlock& group = groups[{block->kind, block->what, unit}];
    group.tag = static_cast<MemoryTag>(block->kind);
    group.what = block->what;
    group.unit = unit;
    group.bytes += block->bytes_written;
    ++group.count;
  }
  std::vector<LiveBlock> sorted;
  for (const auto& [key, group] : groups) sorted.push_back(group);
  std::stable_sort(sorted.begin(), sorted.end(),
                   [](const LiveBlock& a, const LiveBlock& b) { return a.bytes > b.bytes; });
  return sorted;
}

std::vector<HeldItem> held_after(const Trace& trace, std::int32_t event, MemorySpace space) {
  std::map<std::pair<std::string, std::string>, HeldItem> groups;
  for (const LiveBlock& block : live_after(trace, event, space)) {
    const auto [found, added] = groups.try_emplace({name_of(block.tag), block.what});
    HeldItem& item = found->second;
    item.tag = block.tag;
    item.what = block.what;
    item.first_unit = added ? block.unit : std::min(item.first_unit, block.unit);
    item.last_unit = added ? block.unit : std::max(item.last_unit, block.unit);
    item.blocks += block.count;
    item.bytes += block.bytes;
  }
  std::vector<HeldItem> list;
  for (auto& [key, item] : groups) list.push_back(std::move(item));
  std::ranges::stable_sort(list, std::greater{}, &HeldItem::bytes);
  return list;
}

std::vector<EventTime> measured_times(const Trace& trace) {
  constexpr std::int64_t kPicoseconds = 1000;  // per nanosecond
  std::int64_t origin = INT64_MAX;
  for (const TraceEvent& event : trace.events()) {
    if (event.timing.end_ns != 0) origin = std::min(origin, event.timing.start_ns);
  }
  std::vector<EventTime> times(trace.events().size());
  std::int64_t last = 0;
  for (std::size_t i = 0; i < times.size(); ++i) {
    const Timing& timing = trace.events()[i].timing;
    times[i] = {last, last};
    if (timing.end_ns == 0) continue;
    times[i] = {(timing.start_ns - origin) * kPicoseconds, (timing.end_ns - origin) * kPicoseconds};
    last = std::max(last, times[i].start);
  }
  return times;
}

}  // namespace zl::sim
