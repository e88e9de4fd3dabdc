// Where classes of ranks wait for each other: the collectives of groups that several classes are
// in, and the messages between them. Ranks of one class do the same at the same time, so they wait
// for nobody, and neither does anybody for ranks that are in no class.
// Ownership: refers to the traces. Threads: used by one thread.
#pragma once

#include <map>
#include <optional>
#include <span>
#include <string>
#include <tuple>
#include <vector>

#include "simulator/timeline.h"

namespace zl::sim {

class Meetings {
 public:
  // Error{invalid} for a rank of two classes, and for several classes of all ranks.
  explicit Meetings(std::span<const RankTrace> classes);

  // Whether other classes take part in this collective or message of class `self`.
  bool has_others(std::size_t self, const TraceEvent& event);

  // Class `self` can run its next collective of a group from `time` on; once for each.
  void arrive(std::size_t self, const TraceEvent& event, std::int64_t time);
  // When the last of the classes arrives at the collective that `self` arrived at last; nullopt:
  // not known yet. Error{infeasible} where another class runs another collective.
  std::optional<std::int64_t> complete(std::size_t self, const TraceEvent& event);

  void send(std::size_t self, const TraceEvent& event, EventTime time);
  // Takes the next message of the peer when it is known when that is sent.
  std::optional<EventTime> receive(std::size_t self, const TraceEvent& event);

  // The most messages that one class has sent another and that it has not received yet.
  std::int64_t most_under_way();
  // What is left over when all have ended: "" or the first message that nobody receives.
  std::string unreceived();

 private:
  // What one stream of a rank sends along one axis: to one rank of the group, or to all (-1).
  struct Channel {
    std::uint8_t axis = 0, stream = 0;
    std::int32_t stride = 1;
    std::int64_t ranks = 1;
    int peer = -1;
    bool operator<(const Channel& other) const {
      const auto key = [](const Channel& c) {
        return std::tuple(c.axis, c.stream, c.stride, c.ranks, c.peer);
      };
      return key(*this) < key(other);
    }
  };
  struct Entry {
    EventTime time;  // arrival in `start`, or the message's
    const TraceEvent* event = nullptr;
  };
  struct Class {
    int rank = 0;
    std::map<Channel, std::vector<Entry>> done;          // collectives and sends
    std::map<Channel, std::size_t> received;             // from the channel's peer
    std::map<Channel, std::vector<std::size_t>> others;  // of a group
  };

  static Channel channel_of(const TraceEvent& event, int peer);
  std::optional<std::size_t> class_of(int rank) const;
  std::optional<std::size_t> taken_of(std::size_t sender, const Channel& channel,
                                      const TraceEvent& first);
  const std::vector<std::size_t>& others_of(std::size_t self, const TraceEvent& event);
  std::string name_of(std::size_t self) const;

  std::vector<Class> classes_;
  std::vector<int> class_of_rank_;  // -1: none
};

}  // namespace zl::sim
