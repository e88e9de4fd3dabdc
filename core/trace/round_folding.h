// Takes rounds of a trace that are what came before out of it, and counts them.
// Ownership: a value. Threads: those of its trace.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <unordered_map>
#include <vector>

#include "core/trace/event_list.h"

namespace zl {

// Events [first, last) that came `count` times in a row and are held once: what a schedule's body
// ran for its micro-batches.
struct Round {
  std::size_t first = 0, last = SIZE_MAX;  // SIZE_MAX: under way
  std::int64_t count = 1;
};

class RoundFolding {
 public:
  // The newest round has ended, and its events may go. They do when the newest n rounds, all of
  // which may go, are the n before them again, with each block at its address: those came once
  // more then. n is at least how many rounds back they wait, so that a wait stays as far behind
  // what it is for.
  void fold(EventList& events, std::vector<Round>& rounds);
  // The event that the trace holds in the place of `id`, of a round that went. It is known for as
  // many events as the trace's row of rounds has.
  std::int64_t held(std::int64_t id) const;

 private:
  void number_records(const EventList& events, std::size_t first);
  bool is_like_the_one_before(const EventList& events, const std::vector<Round>& rounds) const;
  std::size_t look_back(const EventList& events, const Round& newest) const;
  void drop(std::size_t count, EventList& events, std::vector<Round>& rounds);

  std::size_t rounds_ = 0;     // of the trace when one was last folded
  std::size_t alike_ = 0;      // of the newest, each like the one before it,
  std::size_t droppable_ = 0;  // and of these the newest that may go
  // Of the row of rounds: which record an event is, and the trace's events that were looked at.
  std::unordered_map<std::int64_t, std::int64_t> number_;
  std::size_t row_ = 0, seen_ = 0;
  std::unordered_map<std::int64_t, std::int64_t> held_;
  std::deque<std::int64_t> dropped_;  // the keys of held_, oldest first
};

}  // namespace zl
