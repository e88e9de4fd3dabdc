#include "simulator/meetings.h"

#include <algorithm>

#include "core/base/error.h"
#include "simulator/cost/group_of.h"

namespace zl::sim {

Meetings::Meetings(std::span<const RankTrace> classes) : classes_(classes.size()) {
  if (classes.size() < 2) return;
  for (std::size_t i = 0; i < classes.size(); ++i) {
    if (classes[i].ranks.empty()) {
      throw Error(ErrorCode::invalid, "traces: of several classes each says which ranks it is of");
    }
    classes_[i].rank = classes[i].ranks.front();
    for (const int rank : classes[i].ranks) {
      const auto at = static_cast<std::size_t>(rank);
      if (at >= class_of_rank_.size()) class_of_rank_.resize(at + 1, -1);
      if (class_of_rank_[at] != -1) {
        throw Error(ErrorCode::invalid,
                    "traces: rank " + std::to_string(rank) + " is in two classes");
      }
      class_of_rank_[at] = static_cast<int>(i);
    }
  }
}

Meetings::Channel Meetings::channel_of(const TraceEvent& event, int peer) {
  return {event.axis, event.stream, event.stride, event.k, peer};
}

std::optional<std::size_t> Meetings::class_of(int rank) const {
  const auto at = static_cast<std::size_t>(rank);
  if (rank < 0 || at >= class_of_rank_.size() || class_of_rank_[at] < 0) return std::nullopt;
  return static_cast<std::size_t>(class_of_rank_[at]);
}

const std::vector<std::size_t>& Meetings::others_of(std::size_t self, const TraceEvent& event) {
  Class& own = classes_[self];
  const auto [place, is_new] = own.others.try_emplace(channel_of(event, -1));
  std::vector<std::size_t>& others = place->second;
  if (!is_new) return others;
  for (int i = 0; i < static_cast<int>(event.k); ++i) {
    const auto other = class_of(member_of(event, own.rank, i));
    if (other && *other != self) others.push_back(*other);
  }
  std::sort(others.begin(), others.end());
  others.erase(std::unique(others.begin(), others.end()), others.end());
  return others;
}

bool Meetings::has_others(std::size_t self, const TraceEvent& event) {
  if (classes_.size() < 2) return false;
  if (event.type == EventType::collective) return !others_of(self, event).empty();
  const auto other = class_of(peer_of(event, classes_[self].rank));
  return event.type == EventType::message && other && *other != self;
}

void Meetings::arrive(std::size_t self, const TraceEvent& event, std::int64_t time) {
  classes_[self].done[channel_of(event, -1)].push_back({{time, time}, &event});
}

std::optional<std::int64_t> Meetings::complete(std::size_t self, const TraceEvent& event) {
  const Channel channel = channel_of(event, -1);
  const std::size_t nth = classes_[self].done[channel].size() - 1;
  std::int64_t last = 0;
  for (const std::size_t other : others_of(self, event)) {
    const std::vector<Entry>& done = classes_[other].done[channel];
    if (nth >= done.size()) return std::nullopt;
    const TraceEvent& theirs = *done[nth].event;
    if (theirs.kind != event.kind || theirs.m != event.m) {
      throw Error(ErrorCode::infeasible, "deadlock: " + name_of(self) + " runs " + describe(event) +
                                             " of " + std::to_string(event.m) + " elements while " +
                                             name_of(other) + " runs " + describe(theirs) + " of " +
                                             std::to_string(theirs.m));
    }
    last = std::max(last, done[nth].time.start);
  }
  return last;
}

void Meetings::send(std::size_t self, const TraceEvent& event, EventTime time) {
  classes_[self].done[channel_of(event, static_cast<int>(event.n))].push_back({time, &event});
}

std::optional<EventTime> Meetings::receive(std::size_t self, const TraceEvent& event) {
  Class& own = classes_[self];
  const Class& sender = classes_[*class_of(peer_of(event, own.rank))];
  const auto sent = sender.done.find(channel_of(event, coordinate_of(event, own.rank)));
  std::size_t& taken = own.received[channel_of(event, static_cast<int>(event.n))];
  if (sent == sender.done.end() || taken >= sent->second.size()) return std::nullopt;
  return sent->second[taken++].time;
}

// How many of what a class sent through the channel were received; nullopt: nobody is there.
std::optional<std::size_t> Meetings::taken_of(std::size_t sender, const Channel& channel,
                                              const TraceEvent& first) {
  const auto other = class_of(peer_of(first, classes_[sender].rank));
  if (!other || *other == sender) return std::nullopt;
  Channel back = channel;
  back.peer = coordinate_of(first, classes_[sender].rank);
  return classes_[*other].received[back];
}

std::int64_t Meetings::most_under_way() {
  std::size_t most = 0;
  for (std::size_t i = 0; i < classes_.size(); ++i) {
    for (const auto& [channel, sent] : classes_[i].done) {
      if (channel.peer < 0) continue;
      const auto taken = taken_of(i, channel, *sent.front().event);
      if (taken) most = std::max(most, sent.size() - *taken);
    }
  }
  return static_cast<std::int64_t>(most);
}

std::string Meetings::unreceived() {
  for (std::size_t i = 0; i < classes_.size(); ++i) {
    for (const auto& [channel, sent] : classes_[i].done) {
      if (channel.peer < 0) continue;
      const TraceEvent& first = *sent.front().event;
      const auto taken = taken_of(i, channel, first);
      if (!taken || *taken == sent.size()) continue;
      return name_of(i) + " sends " + std::to_string(sent.size()) + " messages to " +
             name_of(*class_of(peer_of(first, classes_[i].rank))) + ", which receives " +
             std::to_string(*taken) + "; the first left over is " + describe(*sent[*taken].event);
    }
  }
  return "";
}

std::string Meetings::name_of(std::size_t self) const {
  return "rank " + std::to_string(classes_[self].rank);
}

}  // namespace zl::sim
