// Communication statistics of a run: what each step sent and did, read off the trace as it grows.
// Ownership: a value. Threads: one rank's thread.
#pragma once

#include <cstdint>
#include <map>
#include <tuple>
#include <vector>

#include "core/trace/trace.h"
#include "core/train/run_result.h"

namespace zl {

class CommunicationStatistics {
 public:
  // Takes in the events appended since the last call as one step (the first call: initialisation).
  void close_step(const Trace& trace);
  // Room for so many steps.
  void reserve(std::int64_t steps) { steps_.reserve(steps); }
  // The trace was emptied.
  void restart_trace() { seen_ = 0; }
  // Adds a copy of a step that was taken in.
  void repeat(std::int64_t step) { steps_.push_back(steps_[step]); }
  // Collectives, moves between tiers, op counts and wire bytes per step into the result.
  void write(RunResult& result, const std::string& link) const;

 private:
  struct Totals {
    std::int64_t count = 0, bytes = 0;
    bool operator==(const Totals&) const = default;
  };
  struct CollectiveKey {
    std::uint8_t kind = 0, purpose = 0, axis = 0;
    bool operator<(const CollectiveKey& other) const {
      return std::tie(kind, purpose, axis) < std::tie(other.kind, other.purpose, other.axis);
    }
    bool operator==(const CollectiveKey&) const = default;
  };
  struct Step {
    std::map<CollectiveKey, Totals> collectives;
    std::map<std::uint8_t, Totals> sends;  // messages, by Axis
    std::map<std::uint8_t, Totals> moves;  // by Route
    std::int64_t ops = 0, wire_bytes = 0;
    bool operator==(const Step&) const = default;
  };
  static void add(const TraceEvent& event, std::int64_t times, Step& step);
  static void add_move(const TraceEvent& event, std::int64_t times, Step& step);
  void append(Step step);

  std::size_t seen_ = 0;
  std::vector<Step> kinds_;          // that differ
  std::vector<std::int32_t> steps_;  // of these; 0 is initialisation
};

}  // namespace zl
