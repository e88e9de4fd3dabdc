#include "core/train/communication_statistics.h"

#include <algorithm>
#include <utility>

#include "core/base/collective_kind.h"

namespace zl {
namespace {

constexpr std::uint8_t kSends = 1;  // `kind` of a message: RankContext::exchange

const char* move_name(Route route) {
  if (route == Route::file_to_host) return "read";
  return route == Route::host_to_file ? "write" : "copy";
}

}  // namespace

void CommunicationStatistics::close_step(const Trace& trace) {
  Step step;
  EventCounts counts(trace, seen_);
  const auto& events = trace.events();
  for (; seen_ < events.size(); ++seen_) add(events[seen_], counts.of(seen_), step);
  append(std::move(step));
}

// Most steps are like one of the last.
void CommunicationStatistics::append(Step step) {
  const auto like = std::find(kinds_.rbegin(), kinds_.rend(), step);
  steps_.push_back(static_cast<std::int32_t>(kinds_.rend() - like) - 1);
  if (like != kinds_.rend()) return;
  steps_.back() = static_cast<std::int32_t>(kinds_.size());
  kinds_.push_back(std::move(step));
}

void CommunicationStatistics::add(const TraceEvent& event, std::int64_t times, Step& step) {
  const bool message = event.type == EventType::message;
  if (event.type == EventType::op || event.type == EventType::collective || message) {
    step.ops += times;
  }
  add_move(event, times, step);
  if (message && event.kind == kSends) {
    Totals& totals = step.sends[event.axis];
    totals.count += times;
    totals.bytes += times * event.wire_bytes;
    step.wire_bytes += times * event.wire_bytes;
  }
  if (event.type != EventType::collective) return;
  Totals& totals = step.collectives[{event.kind, event.purpose, event.axis}];
  totals.count += times;
  totals.bytes += times * event.wire_bytes;
  step.wire_bytes += times * event.wire_bytes;
}

// Copies and files between tiers; what the engine reads and writes for itself is not of the group.
void CommunicationStatistics::add_move(const TraceEvent& event, std::int64_t times, Step& step) {
  const bool copied = event.type == EventType::copy;
  if (!copied && event.type != EventType::transfer) return;
  if (event.purpose != static_cast<std::uint8_t>(Purpose::data)) return;
  Totals& totals = step.moves[event.kind];
  totals.count += times * (copied ? 1 : event.m);
  totals.bytes += times * event.bytes_written;
}

void CommunicationStatistics::write(RunResult& result, const std::string& link) const {
  std::map<CollectiveKey, Totals> sums;
  std::map<std::uint8_t, Totals> moves, sends;
  for (const std::int32_t kind : steps_) {
    const Step& step = kinds_[kind];
    result.op_count += step.ops;
    for (const auto& [key, totals] : step.collectives) {
      sums[key].count += totals.count;
      sums[key].bytes += totals.bytes;
    }
    for (const auto& [axis, totals] : step.sends) {
      sends[axis].count += totals.count;
      sends[axis].bytes += totals.bytes;
    }
    for (const auto& [route, totals] : step.moves) {
      moves[route].count += totals.count;
      moves[route].bytes += totals.bytes;
    }
  }
  for (const auto& [key, totals] : sums) {
    result.communication.push_back(
        {name_of(static_cast<CollectiveKind>(key.kind)), name_of(static_cast<Purpose>(key.purpose)),
         name_of(static_cast<Axis>(key.axis)), link, totals.count, totals.bytes});
  }
  for (const auto& [axis, totals] : sends) {
    result.communication.push_back({"send", name_of(Purpose::data),
                                    name_of(static_cast<Axis>(axis)), link, totals.count,
                                    totals.bytes});
  }
  for (const auto& [route, totals] : moves) {
    result.communication.push_back({move_name(static_cast<Route>(route)), "tiers", "",
                                    name_of(static_cast<Route>(route)), totals.count,
                                    totals.bytes});
  }
  // Step 0 is initialisation; the average is over the steps after the first where there are any.
  const std::size_t first = steps_.size() > 2 ? 2 : 1;
  if (steps_.size() <= first) return;
  std::int64_t bytes = 0;
  for (std::size_t i = first; i < steps_.size(); ++i) bytes += kinds_[steps_[i]].wire_bytes;
  result.wire_bytes_per_step = bytes / static_cast<std::int64_t>(steps_.size() - first);
}

}  // namespace zl
