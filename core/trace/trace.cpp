#include "core/trace/trace.h"

#include <algorithm>
#include <array>
#include <bit>
#include <map>

#include "core/base/collective_kind.h"
#include "core/base/fnv.h"
#include "core/base/stream.h"
#include "core/ops/op.h"

namespace zl {
namespace {

bool is_work(const TraceEvent& event) {
  return event.type == EventType::op || event.type == EventType::collective ||
         event.type == EventType::message;
}

bool is_move(const TraceEvent& event) {
  return event.type == EventType::copy || event.type == EventType::transfer;
}

// Vector clocks: how far into each stream the work of a stream is known to have completed.
using Clock = std::array<std::int64_t, kStreams>;

bool ordered(const TraceEvent& first, std::int64_t first_index, const Clock& clock_of_second) {
  return first_index <= clock_of_second[first.stream];
}

// For every event, what its stream had waited for when it was enqueued. Index -1: nothing.
std::vector<Clock> clocks(const Trace& trace) {
  std::array<Clock, kStreams> now;
  for (Clock& clock : now) clock.fill(-1);
  std::map<std::int64_t, Clock> recorded;
  std::vector<Clock> result;
  result.reserve(trace.events().size());
  std::int64_t index = 0;
  for (const TraceEvent& event : trace.events()) {
    Clock& mine = now[event.stream];
    if (event.type == EventType::wait) {
      const Clock& other = recorded[event.id];
      for (std::size_t s = 0; s < kStreams; ++s) mine[s] = std::max(mine[s], other[s]);
    } else if (event.type == EventType::record) {
      recorded[event.id] = mine;
    } else if (event.type == EventType::synchronize) {
      // The host waits: later work of every stream comes after.
      for (Clock& clock : now) {
        for (std::size_t s = 0; s < kStreams; ++s) clock[s] = std::max(clock[s], mine[s]);
      }
    }
    result.push_back(mine);
    if (takes_time(event)) mine[event.stream] = index;
    ++index;
  }
  return result;
}

}  // namespace

std::int64_t Trace::op_count() const {
  return std::count_if(events_.begin(), events_.end(), is_work);
}

std::uint64_t Trace::sequence_hash() const {
  Fnv1a hash;
  std::map<std::int64_t, std::uint64_t> records;  // event ids differ by backend, their order not
  for (const TraceEvent& event : events_) {
    if (event.type == EventType::record) records.emplace(event.id, records.size() + 1);
    if (event.type == EventType::wait) hash.add(records[event.id]);
    if (event.type == EventType::allocate || event.type == EventType::free) continue;
    hash.add(static_cast<std::uint64_t>(event.type) | std::uint64_t{event.kind} << 8 |
             std::uint64_t{event.stream} << 16 | std::uint64_t{event.purpose} << 24 |
             static_cast<std::uint64_t>(event.dtype) << 32 |
             static_cast<std::uint64_t>(event.scope.phase) << 40 | std::uint64_t{event.axis} << 48);
    hash.add(static_cast<std::uint64_t>(event.scope.unit) << 32 |
             static_cast<std::uint32_t>(event.scope.step));
    for (const std::int64_t value :
         {event.m, event.n, event.k, event.bytes_read, event.bytes_written, event.wire_bytes}) {
      hash.add(static_cast<std::uint64_t>(value));
    }
    hash.add(std::bit_cast<std::uint64_t>(event.flops));
  }
  return hash.value();
}

bool takes_time(const TraceEvent& event) { return is_work(event) || is_move(event); }

std::string short_name(const TraceEvent& event) {
  if (event.type == EventType::collective) return name_of(static_cast<CollectiveKind>(event.kind));
  if (event.type == EventType::message) {
    return (event.kind == 1 ? "send to " : "receive from ") + std::to_string(event.n);
  }
  if (is_move(event)) return name_of(static_cast<Route>(event.kind));
  return std::string(op_name(event.kind)) + " [" + std::to_string(event.m) + "," +
         std::to_string(event.n) + "," + std::to_string(event.k) + "]";
}

std::string describe(const TraceEvent& event) {
  return short_name(event) + " (stream " + std::to_string(event.stream) + ", unit " +
         std::to_string(event.scope.unit) + ", " + name_of(event.scope.phase) + ")";
}

std::vector<std::string> find_hazards(const Trace& trace,
                                      const std::vector<TensorAccess>& accesses) {
  const std::vector<Clock> clock = clocks(trace);
  std::vector<std::string> hazards;
  // Sweep by address: every pair of overlapping accesses is compared once.
  std::vector<const TensorAccess*> sorted;
  for (const TensorAccess& access : accesses) {
    if (access.begin < access.end) sorted.push_back(&access);
  }
  std::sort(sorted.begin(), sorted.end(),
            [](const auto* a, const auto* b) { return a->begin < b->begin; });
  for (std::size_t i = 0; i < sorted.size(); ++i) {
    for (std::size_t j = i + 1; j < sorted.size() && sorted[j]->begin < sorted[i]->end; ++j) {
      const TensorAccess* first = sorted[i]->event <= sorted[j]->event ? sorted[i] : sorted[j];
      const TensorAccess* second = first == sorted[i] ? sorted[j] : sorted[i];
      const TraceEvent& a = trace.events()[first->event];
      const TraceEvent& b = trace.events()[second->event];
      if (a.stream == b.stream || (!first->writes && !second->writes)) continue;
      if (ordered(a, first->event, clock[second->event])) continue;
      hazards.push_back(describe(b) + (second->writes ? " writes" : " reads") + " what " +
                        describe(a) + (first->writes ? " writes" : " reads") +
                        " without waiting for it");
    }
  }
  return hazards;
}

}  // namespace zl
