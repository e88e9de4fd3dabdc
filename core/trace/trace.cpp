#include "core/trace/trace.h"

#include <algorithm>
#include <array>
#include <bit>
#include <map>
#include <utility>

#include "core/base/collective_kind.h"
#include "core/base/error.h"
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

// Hashes events one after the other. Ids of record events differ by backend, their order does not:
// a wait is told by how many were recorded since the one that it waits for, up to the wait or up to
// where the rounds in a row began that it is in.
class EventHash {
 public:
  void add(const TraceEvent& event, Fnv1a& hash) {
    if (event.type == EventType::record) records_.emplace(event.id, ++recorded_);
    if (event.type == EventType::wait) hash.add(distance(event.id));
    if (event.type == EventType::allocate || event.type == EventType::free) return;
    hash.add(static_cast<std::uint64_t>(event.type) | std::uint64_t{event.kind} << 8 |
             std::uint64_t{event.stream} << 16 | std::uint64_t{event.purpose} << 24 |
             static_cast<std::uint64_t>(event.dtype) << 32 |
             static_cast<std::uint64_t>(event.scope.phase) << 40 | std::uint64_t{event.axis} << 48);
    hash.add(static_cast<std::uint64_t>(event.scope.unit) << 32 |
             static_cast<std::uint32_t>(event.scope.step));
    if (event.type == EventType::collective) hash.add(event.id);
    for (const std::int64_t value :
         {event.m, event.n, event.k, event.bytes_read, event.bytes_written, event.wire_bytes}) {
      hash.add(static_cast<std::uint64_t>(value));
    }
    hash.add(std::bit_cast<std::uint64_t>(event.flops));
  }
  // follows: right after another round.
  void begin_round(bool follows) {
    before_round_ = recorded_;
    if (!follows) before_rounds_ = recorded_;
  }
  // What waits behind `count` rounds for a record of the round or of one before, waits for that of
  // the last rounds.
  void end_round(std::int64_t count) {
    const std::uint64_t more = static_cast<std::uint64_t>(count - 1) * (recorded_ - before_round_);
    if (more == 0) return;
    for (auto& [id, number] : records_) number += number > before_rounds_ ? more : 0;
    recorded_ += more;
  }
  void end_rounds() { before_rounds_ = 0; }

 private:
  std::uint64_t distance(std::int64_t id) const {
    const auto found = records_.find(id);
    if (found == records_.end()) return 0;
    const bool before = found->second <= before_rounds_;
    return 2 * ((before ? before_rounds_ : recorded_) - found->second + 1) + (before ? 1 : 0);
  }

  std::map<std::int64_t, std::uint64_t> records_;  // number by id
  std::uint64_t recorded_ = 0, before_round_ = 0;
  std::uint64_t before_rounds_ = 0;  // 0: not in rounds
};

}  // namespace

void Trace::begin_round(bool may_fold) {
  end_round();
  rounds_.push_back({.first = events_.size()});
  may_fold_ = may_fold;
}

void Trace::end_round() {
  if (rounds_.empty() || rounds_.back().last != SIZE_MAX) return;
  rounds_.back().last = events_.size();
  if (std::exchange(may_fold_, false)) folding_.fold(events_, rounds_);
}

void Trace::repeat_round(std::int64_t times) {
  end_round();
  ZL_CHECK(!rounds_.empty() && rounds_.back().last == events_.size(), "no round ends here");
  rounds_.back().count += times;
}

std::int64_t Trace::op_count() const {
  EventCounts counts(*this);
  std::int64_t count = 0;
  for (std::size_t i = 0; i < events_.size(); ++i) {
    if (is_work(events_[i])) count += counts.of(i);
  }
  return count;
}

std::uint64_t Trace::sequence_hash() const {
  Fnv1a hash;
  EventHash events;
  std::uint64_t like = 0;  // of `count` rounds in a row
  std::int64_t count = 0;
  const auto close = [&] {
    if (count == 0) return;
    hash.add(like);
    hash.add(static_cast<std::uint64_t>(std::exchange(count, 0)));
  };
  std::size_t next = 0;
  for (const Round& round : rounds_) {
    const bool follows = count > 0 && next == round.first;
    if (!follows) {
      close();
      events.end_rounds();
    }
    for (; next < round.first; ++next) events.add(events_[next], hash);
    Fnv1a own;
    events.begin_round(follows);
    for (; next < std::min(round.last, events_.size()); ++next) events.add(events_[next], own);
    events.end_round(round.count);
    if (own.value() != like) close();
    like = own.value();
    count += round.count;
  }
  close();
  events.end_rounds();
  for (; next < events_.size(); ++next) events.add(events_[next], hash);
  return hash.value();
}

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
