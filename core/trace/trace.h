// The recorded events of one rank, in program order, and what one pass over them tells.
// Ownership: owns its events; addresses of appended events stay valid until clear(). Threads:
// appended by the rank's thread only; timings are written by stream threads (see event.h).
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>
#include <vector>

#include "core/trace/event.h"

namespace zl {

// Events [first, last) that came `count` times in a row and are held once: what a schedule's body
// ran for its micro-batches.
struct Round {
  std::size_t first = 0, last = SIZE_MAX;  // SIZE_MAX: under way
  std::int64_t count = 1;
};

class Trace {
 public:
  TraceEvent& append(const TraceEvent& event) { return events_.emplace_back(event); }
  const std::deque<TraceEvent>& events() const { return events_; }
  void clear() {
    events_.clear();
    rounds_.clear();
  }

  // What is appended from here on, up to the next call, is a round.
  void begin_round();
  void end_round();
  // The newest round, which ends here, came `times` times more.
  void repeat_round(std::int64_t times);
  // In order; what is in none came once.
  const std::vector<Round>& rounds() const { return rounds_; }

  // Ops, collectives and messages, as often as they came.
  std::int64_t op_count() const;
  // FNV-1a over type, kind, stream, dtype, shape, bytes and scope of every op, collective and
  // synchronisation, in order; of rounds in a row that are alike, of one and of their number. Equal
  // hashes on two backends: the same program.
  std::uint64_t sequence_hash() const;

 private:
  std::deque<TraceEvent> events_;
  std::vector<Round> rounds_;
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

// Ops, collectives, copies and transfers: what occupies a stream.
bool takes_time(const TraceEvent& event);

// What to call such an event: "gemm [256,768,768]", "all_gather".
std::string short_name(const TraceEvent& event);
// The same with its place, for messages: "all_gather (stream 1, unit 3, gather)".
std::string describe(const TraceEvent& event);

}  // namespace zl
