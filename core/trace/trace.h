// The recorded events of one rank, in program order, and what one pass over them tells.
// Ownership: owns its events; addresses of appended events stay valid until clear(), those of a
// round that may fold until its end. Threads: appended by the rank's thread only; timings are
// written by stream threads (see event.h).
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "core/trace/event_list.h"
#include "core/trace/round_folding.h"

namespace zl {

class Trace {
 public:
  TraceEvent& append(const TraceEvent& event) {
    TraceEvent& added = events_.append(event);
    if (event.type == EventType::wait) added.id = folding_.held(event.id);
    return added;
  }
  const EventList& events() const { return events_; }
  void clear() { *this = Trace(); }

  // What is appended from here on, up to the next call, is a round. may_fold: at its end its events
  // go, and are counted, if they are those of rounds before (RoundFolding); what waits for them
  // then waits for those. Nothing may refer to them: they are not timed.
  void begin_round(bool may_fold = false);
  void end_round();
  bool in_round_that_may_fold() const { return may_fold_; }
  // The newest round, which ends here, came `times` times more.
  void repeat_round(std::int64_t times);
  // In order; what is in none came once.
  const std::vector<Round>& rounds() const { return rounds_; }

  // Ops, collectives and messages, as often as they came.
  std::int64_t op_count() const;
  // FNV-1a over type, kind, stream, dtype, shape, bytes (those in place, too) and scope of every
  // op, collective and synchronisation, in order; of rounds in a row that are alike, of one and of
  // their number. Equal hashes on two backends: the same program.
  std::uint64_t sequence_hash() const;

 private:
  EventList events_;
  std::vector<Round> rounds_;
  RoundFolding folding_;
  bool may_fold_ = false;
};

// How often the events of a trace came, asked for in order from `first` on.
class EventCounts {
 public:
  explicit EventCounts(const Trace& trace, std::size_t first = 0)
      : rounds_(trace.rounds()),
        next_(std::ranges::upper_bound(rounds_, first, {}, &Round::last) - rounds_.begin()) {}
  std::int64_t of(std::size_t event) {
    while (next_ < rounds_.size() && rounds_[next_].last <= event) ++next_;
    const bool within = next_ < rounds_.size() && rounds_[next_].first <= event;
    return within ? rounds_[next_].count : 1;
  }

 private:
  const std::vector<Round>& rounds_;
  std::size_t next_;  // the first round that ends behind what was asked for
};

// One tensor access of one event, kept only when hazard checking is on.
struct TensorAccess {
  std::int64_t event = 0;            // index in the trace
  std::uint64_t begin = 0, end = 0;  // address range
  bool writes = false;
};

// Names each pair of accesses to overlapping bytes on different streams, at least one a write, that
// no record/wait chain orders: "adam_step (stream 0, unit 3) writes what all_gather (stream 1)
// reads". Empty: no hazard. A freed and reused address is a conflict like any other.
std::vector<std::string> find_hazards(const Trace& trace,
                                      const std::vector<TensorAccess>& accesses);

// Ops, collectives, messages, copies and transfers: what occupies a stream.
inline bool takes_time(const TraceEvent& event) {
  switch (event.type) {
    case EventType::op:
    case EventType::collective:
    case EventType::message:
    case EventType::copy:
    case EventType::transfer:
      return true;
    default:
      return false;
  }
}

// What to call such an event: "gemm [256,768,768]", "all_gather".
std::string short_name(const TraceEvent& event);
// The same with its place, for messages: "all_gather (stream 1, unit 3, gather)".
std::string describe(const TraceEvent& event);

}  // namespace zl
