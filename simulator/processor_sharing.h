// Time of ranks that outnumber the cores of their machine where not all work at once, as in a
// pipeline: those that work share the cores out equally (Kleinrock 1967, processor sharing), so
// each is the faster the more of the others wait. Ownership: a value. Threads: immutable.
#pragma once

#include <cstdint>
#include <vector>

#include "simulator/timeline.h"

namespace zl::sim {

// Engines of their own move messages and files.
inline bool uses_cores(const TraceEvent& event) {
  return event.type == EventType::op || event.type == EventType::collective ||
         event.type == EventType::copy;
}

// How many ranks share how many cores; none: each has a device of its own.
struct SharedCores {
  int ranks = 0, cores = 0;

  // Whether ranks that wait leave anything to others.
  bool matter() const { return cores > 0 && ranks > cores; }
};
inline SharedCores shared_cores(const ClusterSpec& cluster) {
  return {cluster.devices, cluster.shared_cores};
}

// The cluster on which no rank is the faster for others that wait, at the prices of ranks that all
// work.
ClusterSpec with_all_at_work(ClusterSpec cluster);

// When ranks that do the same work, in any order; what overlaps counts once.
struct WorkingRanks {
  int ranks = 1;
  std::vector<EventTime> times;
};

inline std::int64_t at_pace(double pace, std::int64_t picoseconds) {
  return pace == 1 ? picoseconds
                   : static_cast<std::int64_t>(pace * static_cast<double>(picoseconds));
}

// What of the price of each event of a trace really passes: of the first time, and of rounds that
// came again (see RoundTimes) of each time laid out; later ones are like the last. Empty: all of
// it.
struct EventPaces {
  std::vector<double> first;
  std::vector<std::vector<double>> again;
};

// At every instant all ranks that work go equally fast, so where prices are those of ranks that all
// work, what really passes is the same for all: one clock.
class SharedClock {
 public:
  SharedClock(const std::vector<WorkingRanks>& all, SharedCores shared);

  // Picoseconds that really pass until then.
  double passed(std::int64_t time) const;
  // What of a price really passes within this time, at most 1; of an instant what does then.
  double pace(EventTime time) const;

 private:
  struct Turn {
    std::int64_t from = 0;  // picoseconds, as priced
    double passed = 0;      // really, until then
    double pace = 1;        // from then on
  };
  const Turn& turn_at(std::int64_t time) const;

  std::vector<Turn> turns_;  // in order, the first begins at 0
};

}  // namespace zl::sim
