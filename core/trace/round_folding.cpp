#include "core/trace/round_folding.h"

#include <algorithm>

namespace zl {
namespace {

bool is_block(const TraceEvent& event) {
  return event.type == EventType::allocate || event.type == EventType::free;
}

// But for what two rounds may differ in: the micro-batch, times, and which event or address it is.
bool is_like(const TraceEvent& a, const TraceEvent& b) {
  TraceEvent like = a;
  like.timing = b.timing;
  like.scope.micro = b.scope.micro;
  const bool names = is_block(b) || b.type == EventType::record || b.type == EventType::wait;
  if (names) like.id = b.id;
  return like == b;
}

// The first event of the rounds in a row that end with the newest.
std::size_t begin_of_row(const std::vector<Round>& rounds) {
  std::size_t i = rounds.size() - 1;
  while (i > 0 && rounds[i - 1].last == rounds[i].first) --i;
  return rounds[i].first;
}

// Whether the events from `first` on have the blocks of as many before them.
bool has_same_blocks(const EventList& events, std::size_t first) {
  const std::size_t length = events.size() - first;
  for (std::size_t i = first; i < events.size(); ++i) {
    if (is_block(events[i]) && events[i].id != events[i - length].id) return false;
  }
  return true;
}

}  // namespace

void RoundFolding::fold(EventList& events, std::vector<Round>& rounds) {
  if (rounds.size() != rounds_ + 1) alike_ = droppable_ = 0;
  rounds_ = rounds.size();
  number_records(events, begin_of_row(rounds));
  const bool alike = is_like_the_one_before(events, rounds);
  alike_ = alike ? alike_ + 1 : 0;
  droppable_ = alike ? droppable_ + 1 : 0;
  // Those that are compared are like each other, so equally long.
  std::size_t count = alike ? look_back(events, rounds.back()) : 1;
  for (; count <= droppable_ && 2 * count <= alike_ + 1; ++count) {
    if (!has_same_blocks(events, rounds[rounds.size() - count].first)) continue;
    return drop(count, events, rounds);
  }
}

std::int64_t RoundFolding::held(std::int64_t id) const {
  const auto found = held_.find(id);
  return found == held_.end() ? id : found->second;
}

void RoundFolding::number_records(const EventList& events, std::size_t first) {
  if (first != row_ || seen_ < first || seen_ > events.size()) {
    row_ = seen_ = first;
    number_.clear();
  }
  for (; seen_ < events.size(); ++seen_) {
    const TraceEvent& event = events[seen_];
    if (event.type != EventType::record) continue;
    number_.emplace(event.id, static_cast<std::int64_t>(number_.size()));
  }
}

// A wait is for what was recorded before the row, or as many records ago.
bool RoundFolding::is_like_the_one_before(const EventList& events,
                                          const std::vector<Round>& rounds) const {
  const Round& newest = rounds.back();
  const std::size_t length = newest.last - newest.first;
  if (rounds.size() < 2) return false;
  const Round& before = rounds[rounds.size() - 2];
  if (before.last != newest.first || before.last - before.first != length) return false;
  const auto first = events.begin() + static_cast<std::ptrdiff_t>(newest.first);
  if (!std::equal(first, events.end(), first - static_cast<std::ptrdiff_t>(length), is_like)) {
    return false;
  }
  const std::int64_t records = std::count_if(
      first, events.end(), [](const TraceEvent& each) { return each.type == EventType::record; });
  return std::equal(first, events.end(), first - static_cast<std::ptrdiff_t>(length),
                    [&](const TraceEvent& a, const TraceEvent& b) {
                      if (a.type != EventType::wait) return true;
                      const auto one = number_.find(a.id), two = number_.find(b.id);
                      if (one == number_.end()) return a.id == b.id;
                      return two != number_.end() && one->second == two->second + records;
                    });
}

// In rounds, at least one; of a wait for what was recorded in the row.
std::size_t RoundFolding::look_back(const EventList& events, const Round& newest) const {
  std::int64_t records = 0;
  for (std::size_t i = newest.first; i < newest.last; ++i) {
    records += events[i].type == EventType::record ? 1 : 0;
  }
  std::int64_t farthest = 1;
  const std::int64_t before = static_cast<std::int64_t>(number_.size()) - records;
  for (std::size_t i = newest.first; records > 0 && i < newest.last; ++i) {
    const auto found = number_.find(events[i].id);
    if (events[i].type != EventType::wait || found == number_.end()) continue;
    farthest = std::max(farthest, (before - found->second + records - 1) / records);
  }
  return static_cast<std::size_t>(farthest);
}

void RoundFolding::drop(std::size_t count, EventList& events, std::vector<Round>& rounds) {
  const std::size_t first = rounds[rounds.size() - count].first, length = events.size() - first;
  for (std::size_t i = first; i < events.size(); ++i) {
    if (events[i].type != EventType::record) continue;
    number_.erase(events[i].id);
    held_[events[i].id] = events[i - length].id;
    dropped_.push_back(events[i].id);
  }
  for (; dropped_.size() > number_.size(); dropped_.pop_front()) held_.erase(dropped_.front());
  events.truncate(first);
  rounds.resize(rounds.size() - count);
  for (std::size_t i = rounds.size() - count; i < rounds.size(); ++i) ++rounds[i].count;
  seen_ = events.size();
  rounds_ = rounds.size();
  alike_ -= count;
  droppable_ = 0;
}

}  // namespace zl
